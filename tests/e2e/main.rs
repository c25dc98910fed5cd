//! Runs the command as a user does: files in, files and text out.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[macro_use]
mod harness;

mod architecture;

/// Files to cells: sources, layouts, inputs that change, derived tables.
mod load {
    mod aggregates;
    mod changed_inputs;
    mod csv {
        mod errors;
        mod headers;
        mod nasty;
        mod records;
    }
    mod derived_columns;
    mod derived_tables;
    mod formats {
        mod columnar;
        mod dump_files;
        mod dumps;
        mod json;
    }
    mod grown_inputs;
    mod input_identity;
    mod layouts;
    mod new;
    mod object_stores;
    mod reach;
    mod schema_guides;
    mod schema_modes;
    pub mod spills;
    mod times;
    mod upserts;
}

/// Published parts: what they hold, and when they are published again.
mod export {
    mod changed_exports;
    mod checked_jobs;
    mod former;
    mod parts;
    mod republishing;
    pub mod sample_bytes;
    mod several_files;
    mod shared_scans;
}

/// `sql` and `read`, the command line, the places it names, where results go and what messages hold.
mod query {
    mod command_line;
    mod damaged_files;
    mod external_tables;
    mod large_queries;
    mod memory_limit;
    mod output;
    mod places;
    mod read;
    mod sample;
    mod screen;
    mod statements;
    mod told;
    mod views;
}

/// Running and keeping a store: runs, records, damage, deletes, backups.
mod ops {
    mod backfill;
    mod backup;
    mod bucket_root;
    mod compatibility;
    mod damage;
    mod deletes;
    mod doctor;
    mod history;
    mod maintenance;
    mod pipes_and_disks;
    mod report;
    mod retries;
    mod run_records;
    mod runs;
    mod verify;
}

/// The root in a bucket of our own server: its requests, faults, and several who use it.
mod bucket {
    mod away;
    mod azure;
    mod httpfs;
    mod lost_versions;
    mod moves;
    mod places;
    mod requests;
    mod secrets;
    mod two_machines;
}

/// Runs whose work other processes do.
#[cfg(feature = "cluster")]
mod cluster {
    mod failures;
    mod in_a_bucket;
    mod refusals;
    mod same_results;
    mod servers;
    mod tls;
}

/// Layouts judged before a cluster exists.
mod advisor {
    mod advise;
    mod compare;
    mod emulator;
    mod guides;
    mod heatmap;
    mod lint;
    mod metamorphic;
    mod oracle;
}

/// Runs that nobody watches: cron and systemd, missed runs, hooks, alerts.
mod schedule {
    mod alerts;
    mod catch_up;
    mod cron_and_systemd;
    mod gone_inputs;
    mod hooks;
    mod lost_root;
    mod lost_windows;
    mod monitoring;
    mod owed_windows;
}

/// Other programs read what is published: DuckDB, Polars, pyarrow, protobuf, Bigtable's emulator.
mod interop {
    mod bigtable_emulator;
    mod day_columns;
    mod delta;
    mod duckdb;
    mod engines;
    mod iceberg {
        mod catalog;
        pub mod tables;
    }
    mod lineage;
    mod packed_groups;
    mod python_module;
    pub mod readers;
}

/// Bigtable's clients, asked of a store and of the emulator.
#[cfg(feature = "bigtable")]
mod bigtable {
    mod pulls;
    mod serve;
    mod transfer;
}

/// PostgreSQL's clients, asked of a store.
#[cfg(feature = "postgres")]
mod postgres {
    mod access;
    mod bounds;
    mod drivers;
    mod limits;
    mod psql;
    mod served;
    mod session;
}

/// Pages, help, JSON and snapshots of output.
mod docs {
    mod completions;
    mod documents;
    mod json_output;
    mod json_schema;
    mod snapshots;
}
