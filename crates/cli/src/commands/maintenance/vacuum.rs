//! `tidetable vacuum`: lists and removes old versions and unreferenced files.

use std::io::Write;

use tidetable_layout::time::HOUR;
use tidetable_runner::UlidIds;
use tidetable_runner::record::NewestVersions;
use tidetable_store::StoreError;
use tidetable_store::leave_out;
use tidetable_upkeep::{Removal, RemovalKind, VacuumOptions, VacuumPlan};

use crate::args::{Global, Output, Vacuum};
use crate::commands::{clock, store, table_or_all};
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};

/// Minimum age of a half-written file; a younger one may have a writer. Microseconds.
const MIN_AGE: i64 = HOUR;

/// Removes old versions and leftovers, or only lists them.
pub fn vacuum(global: &Global, args: &Vacuum) -> Result<(), CliError> {
    let store = store(global)?;
    let ago = |age: i64| clock().saturating_sub(age);
    let half_written_before = ago(args.older_than.max(MIN_AGE));
    let options =
        VacuumOptions { before: ago(args.older_than), half_written_before, keep_versions: args.keep_versions };
    let mut out = sentences(global.output);
    let mut files = ResultRows::of(objects::VACUUMED);
    let mut tell = |name: Option<&str>, removals: &[Removal], out: &mut dyn Write| -> Result<(), CliError> {
        for removal in removals {
            let what = kind_name(removal.kind);
            files.push(row![name, removal.path, what, removal.bytes, args.yes]);
        }
        if global.output == Output::Table {
            summary(name, removals, args.yes, out)?;
        }
        Ok(())
    };
    // First, because removing them writes nothing, and the disk may be full.
    let leftovers =
        if args.table.is_none() { tidetable_upkeep::leftovers(&store, half_written_before)? } else { Vec::new() };
    if args.yes {
        leftovers.iter().try_for_each(|removal| store.blobs().delete(&removal.path))?;
    }
    // A vacuum writes a version, and removes what no version names: it would make the loss of a version final.
    let newest = NewestVersions::default();
    let mut lost = None;
    for name in table_or_all(&store, args.table.as_deref())? {
        let plan = newest.check_latest(&store, &name).and_then(|()| VacuumPlan::new(&store.table(&name), options));
        let plan = match plan {
            Err(error @ StoreError::VersionLost { .. }) => {
                lost.get_or_insert(error);
                continue;
            }
            Err(error @ (StoreError::Manifest { .. } | StoreError::Newer { .. })) if args.table.is_none() => {
                leave_out(&error);
                continue;
            }
            plan => plan?,
        };
        let removals = if args.yes { plan.run(&UlidIds::default())?.removals } else { plan.removals };
        tell(Some(&name), &removals, &mut out)?;
    }
    if args.yes {
        // Without room now, a run does it later.
        let _ = store.keep_reserve();
    }
    if args.table.is_none() {
        tell(None, &leftovers, &mut out)?;
    }
    if global.output != Output::Table {
        files.write(global.output, &mut out)?;
    }
    out.flush()?;
    lost.map_or(Ok(()), |error| Err(error.into()))
}

fn summary(name: Option<&str>, removals: &[Removal], done: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let place = name.unwrap_or("exports, runs and rejected rows");
    if removals.is_empty() {
        writeln!(out, "{place}: nothing to remove")?;
        return Ok(());
    }
    let total: u64 = removals.iter().map(|removal| removal.bytes).sum();
    let files = count(removals.len() as u64, "file");
    let done = if done { "removed" } else { "may go; --yes removes them" };
    writeln!(out, "{place}: {files} of {} {done}", bytes(total))?;
    for kind in [RemovalKind::Manifest, RemovalKind::Checkpoint, RemovalKind::Sst, RemovalKind::Leftover] {
        let of_kind = removals.iter().filter(|removal| removal.kind == kind);
        let (files, size) = of_kind.fold((0, 0), |(files, size), removal| (files + 1, size + removal.bytes));
        if files > 0 {
            writeln!(out, "  {} of {}", count(files, kind_name(kind)), bytes(size))?;
        }
    }
    Ok(())
}

fn kind_name(kind: RemovalKind) -> &'static str {
    match kind {
        RemovalKind::Manifest => "manifest",
        RemovalKind::Checkpoint => "checkpoint",
        RemovalKind::Sst => "unused SST",
        RemovalKind::Leftover => "half-written file",
    }
}
