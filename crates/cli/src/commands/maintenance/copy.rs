//! `tidetable copy`.

use std::io::Write;

use tidetable_job::{Project, ProjectError};
use tidetable_runner::backup::{StoreCopy, copy_store};
use tidetable_runner::{UlidIds, open_store};
use tidetable_store::{Ids, ulid_text};

use crate::activity::Activity;
use crate::args::{Copy, Global, Output};
use crate::commands::{project_if_any, root};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};
use crate::signals::stop_on_signals;

/// Copies a store with all versions of its tables into another root; a repeated copy copies only what is new.
pub fn copy(global: &Global, args: &Copy) -> Result<(), CliError> {
    let here =
        std::env::current_dir().map_err(|source| CliError::File { path: "the current folder".to_owned(), source })?;
    // The settings of the project's bucket are for buckets of the command line, too.
    let project = match project_if_any(global) {
        Err(CliError::Project(ProjectError::NotFound { .. })) => None,
        project => project?,
    };

    let [from, to] = [&args.from, &args.to].map(|root| match &project {
        Some(project) => project.clone().with_root(Some(root)),
        None => Project::of_store(&here, root),
    });
    if from.root == to.root {
        return Err(CliError::Usage("a store is copied into another root: FROM and TO are one"));
    }

    root::holds_store(&from, true)?;

    let id = ulid_text(UlidIds::default().next());
    let activity = Activity::begin(global, "copying files");
    let done = copy_store(&open_store(&from)?, &open_store(&to)?, &id, &stop_on_signals()?)?;
    drop(activity);
    done.damaged.iter().for_each(|damage| print_message(global, &format!("damaged: {damage}")));

    let StoreCopy { tables, exports, copied, copied_bytes, known, damaged } = &done;

    let mut out = sentences(global.output);
    if global.output == Output::Table {
        writeln!(
            out,
            "copied {} and {} of {} into {}: {} of {}; {} known",
            count(tables.len() as u64, "table"),
            count(*exports as u64, "export"),
            from.root,
            to.root,
            count(*copied, "file"),
            bytes(*copied_bytes),
            count(*known, "file")
        )?;
    } else {
        let mut rows = ResultRows::of(objects::COPIED);
        rows.push(row![from.root, to.root, tables.len(), exports, copied, copied_bytes, known, damaged.len()]);
        rows.write(global.output, &mut out)?;
    }

    out.flush()?;
    match damaged.len() {
        0 => Ok(()),
        files => {
            let verb = if files == 1 { "is" } else { "are" };
            let files = format!("{} {verb}", count(files as u64, "file"));
            Err(CliError::Incomplete { files, rest: "all others are in the copy" })
        }
    }
}
