//! Runs the command as a person would: files in, files and text out.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod aggregates;
mod asking;
mod backfill;
mod behaviour;
mod catch_up;
mod changes;
mod current;
mod damage;
mod deletes;
mod derived;
mod duckdb;
mod emulator;
mod guides;
mod harness;
mod history;
mod hooks;
mod house;
mod layouts;
mod messages;
mod new;
mod prepared;
mod published;
mod publishing;
mod readers;
mod running;
mod sample;
mod schedule;
mod schema;
mod schema_modes;
mod shell;
mod storage;
mod upkeep;
mod verify;
mod views;
mod wrong_csv;
