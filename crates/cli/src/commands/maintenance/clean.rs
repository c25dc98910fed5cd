//! `tidetable clean`: lists and removes old run records, and unreferenced files outside tables.

use std::collections::BTreeMap;
use std::io::Write;

use tidetable_runner::report::{CleanOptions, CleanPlan, CleanedKind};

use crate::args::{Clean, Global, Output};
use crate::commands::{clock, project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};

/// Removes the files, or only lists them.
pub fn clean(global: &Global, args: &Clean) -> Result<(), CliError> {
    let store = store(global)?;
    let clock = clock();
    let options = CleanOptions { before: clock.saturating_sub(args.older_than), clock, keep: args.keep };
    let plan = CleanPlan::new(&store, project_if_any(global)?.as_ref(), options)?;

    if args.yes {
        plan.run(&store)?;
    }

    let mut out = sentences(global.output);
    if global.output == Output::Table {
        summary(&plan, args.yes, &mut out)?;
    } else {
        let mut files = ResultRows::of(objects::CLEANED);
        for removal in &plan.removals {
            files.push(row![removal.path, removal.kind.name(), removal.bytes, args.yes]);
        }
        files.write(global.output, &mut out)?;
    }

    plan.notes.iter().for_each(|note| print_message(global, note));
    out.flush()?;
    Ok(())
}

fn summary(plan: &CleanPlan, done: bool, out: &mut impl Write) -> Result<(), CliError> {
    if plan.removals.is_empty() {
        writeln!(out, "nothing to remove")?;
        return Ok(());
    }

    let mut kinds: BTreeMap<CleanedKind, (u64, u64)> = BTreeMap::new();
    for removal in &plan.removals {
        let (files, size) = kinds.entry(removal.kind).or_default();
        (*files, *size) = (*files + 1, *size + removal.bytes);
    }

    let (files, size) = kinds.values().fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
    let done = if done { "removed" } else { "may go; --yes removes them" };
    writeln!(out, "{} of {} {done}", count(files, "file"), bytes(size))?;

    for (kind, (files, size)) in kinds {
        let name = match kind {
            CleanedKind::Rejects if files != 1 => "files of rejected rows".to_owned(),
            _ if files != 1 => format!("{}s", kind.name()),
            _ => kind.name().to_owned(),
        };
        writeln!(out, "  {files} {name} of {}", bytes(size))?;
    }
    Ok(())
}
