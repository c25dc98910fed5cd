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
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};

/// Minimum age of a half-written file; a younger one may have a writer. Microseconds.
const MIN_AGE: i64 = HOUR;

/// Removes old versions and leftovers, or only lists them.
pub fn vacuum(global: &Global, args: &Vacuum) -> Result<(), CliError> {
    let store = store(global)?;
    let now = clock();
    let half_written_before = now.saturating_sub(MIN_AGE);
    let before = now.saturating_sub(args.older_than);
    let options = VacuumOptions { before, half_written_before, keep_versions: args.keep_versions };

    let reserve = store.reserve_bytes()?;

    // First, because removing them writes nothing, and the disk may be full.
    let leftovers =
        if args.table.is_none() { tidetable_upkeep::leftovers(&store, half_written_before)? } else { Vec::new() };
    if args.yes {
        leftovers.iter().try_for_each(|removal| store.blobs().delete(&removal.path))?;
    }

    // A vacuum writes a version, and removes what no version names: it would make the loss of a version final.
    let newest = NewestVersions::default();
    let mut lost = None;
    let mut out = sentences(global.output);
    let mut vacuumed =
        Vacuumed { output: global.output, is_done: args.yes, rows: ResultRows::of(objects::VACUUMED), out: &mut out };
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
        vacuumed.add(Some(&name), &removals)?;
    }
    // On a disk that is still full, a later run keeps a reserve again.
    if args.yes && !store.free_reserve()? {
        // Without room now, too.
        let _ = store.keep_reserve();
    }
    if args.table.is_none() {
        vacuumed.add(None, &leftovers)?;
    }

    let rows = vacuumed.rows;
    if global.output != Output::Table {
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;

    let freed = reserve.saturating_sub(store.reserve_bytes()?);
    if freed > 0 {
        let text =
            format!("the disk was full: {} of the reserve that the root keeps (.reserve) are free now", bytes(freed));
        print_message(global, &text);
    }
    lost.map_or(Ok(()), |error| Err(error.into()))
}

/// What a vacuum removes or would remove, told table by table: an error of one leaves the others told.
struct Vacuumed<'a, W: Write> {
    output: Output,
    /// Whether the files are removed, and not only listed.
    is_done: bool,
    /// A row for each file, for formats other than text.
    rows: ResultRows,
    out: &'a mut W,
}

impl<W: Write> Vacuumed<'_, W> {
    /// Tells the removals of a table, or of no table.
    fn add(&mut self, name: Option<&str>, removals: &[Removal]) -> Result<(), CliError> {
        for removal in removals {
            self.rows.push(row![name, removal.path, kind_name(removal.kind), removal.bytes, self.is_done]);
        }
        match self.output {
            Output::Table => summary(name, removals, self.is_done, self.out),
            _ => Ok(()),
        }
    }
}

fn summary(name: Option<&str>, removals: &[Removal], done: bool, out: &mut impl Write) -> Result<(), CliError> {
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
