//! Runs the command as a person would: files in, files and text out.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[macro_use]
mod harness;

mod aggregates;
mod alerts;
mod asking;
mod backfill;
mod backup;
mod behaviour;
mod catch_up;
mod changes;
mod compatibility;
mod current;
mod damage;
mod deletes;
mod derived;
mod doctor;
mod duckdb;
mod emulator;
mod external;
mod guides;
mod history;
mod hooks;
mod house;
mod identity;
mod large_queries;
mod layouts;
mod messages;
mod new;
mod output;
mod prepared;
mod published;
mod publishing;
mod read;
mod readers;
mod records;
mod restated;
mod running;
mod sample;
mod schedule;
mod schema;
mod schema_modes;
mod several_files;
mod shapes;
mod shell;
mod snapshots;
mod stages;
mod storage;
mod times;
mod together;
mod upkeep;
mod verify;
mod views;
mod words;
mod wrong_csv;
