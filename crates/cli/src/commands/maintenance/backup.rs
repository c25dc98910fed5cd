//! `tidetable backup` and `tidetable restore`.

use std::io::Write;

use tidetable_job::Project;
use tidetable_runner::backup::{Backup as Taken, Vault};
use tidetable_runner::record::NewestVersions;
use tidetable_runner::report::lost_lists;
use tidetable_runner::{LostStore, Marks, RunError, UlidIds, open_store};
use tidetable_source::{Location, SourceError};
use tidetable_store::{Ids, StoreError, ulid_text};

use crate::activity::Activity;
use crate::args::{Backup, Global, Output, Restore};
use crate::commands::{clock, project_of_store, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count, time};
use crate::output::{ResultRows, row, sentences};
use crate::place::storage_at;
use crate::signals::stop_on_signals;

/// Makes a backup, or lists or verifies existing ones.
pub fn backup(global: &Global, args: &Backup) -> Result<(), CliError> {
    if args.list {
        return list(global, args);
    }
    if args.verify {
        return verify(global, args);
    }

    let store = store(global)?;
    // A backup of what is left would take the place of one that holds the lost tables and versions.
    let project = project_of_store(global)?;
    if let Some(lost) = Marks::of(&project).lost_tables(&project, &store)?.into_iter().next() {
        return Err(RunError::from(LostStore::from(lost)).into());
    }
    let newest = NewestVersions::default();
    for table in store.tables()? {
        if let Err(error @ StoreError::VersionLost { .. }) = newest.check_latest(&store, &table) {
            return Err(error.into());
        }
    }

    // Without jobs, no export is known to be given up.
    let lost = lost_lists(&store, Some(&project).filter(|project| !project.jobs().is_empty()))?;
    let (id, taken, stop) = (id(), clock(), stop_on_signals()?);
    let activity = Activity::begin(global, "copying files into the backup");
    let vault = Vault::make(storage_at(&args.vault)?, store.blobs().as_ref(), &id, &stop)?;
    let done = vault.backup(&store, &id, taken, args.keep as usize, &stop)?;
    drop(activity);

    done.notes.iter().for_each(|note| print_message(global, note));
    done.backup.damaged.iter().for_each(|damage| print_message(global, &format!("damaged: {damage}")));
    for (export, parts) in &lost {
        let parts = count(*parts, "published part");
        print_message(
            global,
            &format!(
                "lost: exports/{export}.json, so {parts} of {export} are in no backup; `tidetable doctor` says what to do"
            ),
        );
    }

    let mut out = sentences(global.output);
    let Taken { id, root, files, tables, .. } = &done.backup;
    if global.output == Output::Table {
        let (tables, all) = (count(tables.len() as u64, "table"), count(files.len() as u64, "file"));
        let (size, copied) = (bytes(done.backup.bytes()), count(done.copied, "file"));
        let copied_size = bytes(done.copied_bytes);
        writeln!(out, "backup {id} of {root}: {tables}, {all} of {size}; copied now: {copied} of {copied_size}")?;
    } else {
        rows(&[(&done.backup, Some((done.copied, done.copied_bytes)))]).write(global.output, &mut out)?;
    }

    out.flush()?;
    damaged(done.backup.damaged.len() + lost.len(), "the rest is in the backup, and older backups stay")
}

/// Restores a backup, each file verified as it is copied, into a root that is empty or holds an unfinished restore.
pub fn restore(global: &Global, args: &Restore) -> Result<(), CliError> {
    let root = match &args.into {
        Some(root) => root.clone(),
        None => {
            let root = project_of_store(global)?.root;
            Location::parse(&root).map_err(SourceError::from).map_err(StoreError::from)?
        }
    };

    let stop = stop_on_signals()?;
    let vault = Vault::open(storage_at(&args.vault)?, &id(), &stop)?;
    let backup = vault.find(args.at.as_deref())?;

    let activity = Activity::begin(global, "restoring files");
    let restored = match &root {
        Location::Bucket(_) => vault.restore_into_bucket(backup, storage_at(&root)?.as_ref(), &stop)?,
        Location::Path(root) => vault.restore(backup, root, &stop)?,
    };
    drop(activity);

    // What the root held before is not missed any more.
    if let Ok(project) = project_of_store(global)
        && let Err(error) = note_restored(&project.with_root(Some(&root)))
    {
        print_message(global, &format!("warning: the project does not remember the store of {root}: {error}"));
    }

    let missing = restored.backup.damaged.iter().map(|damage| format!("not in the backup: {damage}"));
    let lost = restored.damaged.iter().map(|damage| format!("damaged: {damage}"));
    missing.chain(lost).for_each(|line| print_message(global, &line));

    let mut out = sentences(global.output);
    if global.output == Output::Table {
        let Taken { id, taken, files, tables, .. } = &restored.backup;
        let (written, all) = (restored.copied + restored.known, files.len() as u64);
        let files = match written == all {
            true => format!("{} of {}", count(all, "file"), bytes(restored.backup.bytes())),
            false => format!("{written} of {}", count(all, "file")),
        };
        writeln!(
            out,
            "restored backup {id} of {} into {root}: {}, {files}, each with its checksum",
            time(*taken).unwrap_or_default(),
            count(tables.len() as u64, "table"),
        )?;
    } else {
        rows(&[(&restored.backup, None)]).write(global.output, &mut out)?;
    }

    out.flush()?;
    if let Some(taken) = time(restored.backup.taken) {
        let text = format!(
            "note: the next runs load again what came after {taken}, as far as the inputs are still there; rows of inputs that were loaded since \
             and are gone are missing: put those files back first. Deletes, and inputs left out by --without, since then are undone: \
             repeat them before the next run"
        );
        print_message(global, &text);
    }
    let missing = restored.backup.damaged.len() + restored.damaged.len();
    damaged(missing, "the rest is restored: `tidetable doctor` says what is missing")
}

/// Forgets what the root of `project` held before, and notes what it holds now.
fn note_restored(project: &Project) -> Result<(), CliError> {
    let marks = Marks::of(project);
    marks.forget().map_err(RunError::Marks)?;
    Ok(marks.remember(project, &open_store(project)?)?)
}

/// A new name of a backup, or of a process that uses a place of backups.
fn id() -> String {
    ulid_text(UlidIds::default().next())
}

fn list(global: &Global, args: &Backup) -> Result<(), CliError> {
    let vault = Vault::open(storage_at(&args.vault)?, &id(), &stop_on_signals()?)?;
    let mut backups = Vec::new();
    let mut broken = 0;
    for name in vault.names()?.iter().rev() {
        match vault.load(name) {
            Ok(backup) => backups.push(backup),
            Err(error) => {
                broken += 1;
                print_message(global, &format!("damaged: {error}"));
            }
        }
    }
    let listed: Vec<_> = backups.iter().map(|backup| (backup, None)).collect();
    rows(&listed).print(global.output)?;
    damaged(broken, "the others can be restored")
}

fn verify(global: &Global, args: &Backup) -> Result<(), CliError> {
    let report = Vault::open(storage_at(&args.vault)?, &id(), &stop_on_signals()?)?.verify()?;
    let mut out = sentences(global.output);
    let found = || report.damaged.iter().chain(&report.missing);
    if global.output == Output::Table {
        found().try_for_each(|damage| writeln!(out, "{damage}"))?;
        let state = match (report.damaged.is_empty(), report.missing.is_empty()) {
            (false, _) => "damaged",
            (true, false) => "incomplete",
            (true, true) => "sound",
        };
        let (backups, objects) = (count(report.backups as u64, "backup"), count(report.objects, "file"));
        writeln!(out, "{state}: {backups}, {objects} read back")?;
    } else {
        let mut rows = ResultRows::of(objects::BACKUP_DAMAGE);
        found().for_each(|damage| rows.push(row![damage]));
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;
    let rest = match report.damaged.is_empty() {
        true => "mend the store, as `tidetable verify` says, and take another backup",
        // A backup copies no content that is there by its name.
        false => "remove these files from the folder of backups, and take another backup",
    };
    damaged(report.damaged.len() + report.missing.len(), rest)
}

/// A row for each backup; for a new one, with the amount copied.
fn rows(backups: &[(&Taken, Option<(u64, u64)>)]) -> ResultRows {
    let mut rows = ResultRows::of(objects::BACKUPS).minor(&["copied_bytes", "copied", "files", "tables", "root"]);
    for (backup, copied) in backups {
        rows.push(row![
            backup.id,
            time(backup.taken),
            backup.root,
            backup.tables.len(),
            backup.files.len(),
            backup.bytes(),
            backup.damaged.len(),
            copied.map(|copied| copied.0),
            copied.map(|copied| copied.1)
        ]);
    }
    rows
}

fn damaged(files: usize, rest: &'static str) -> Result<(), CliError> {
    if files == 0 {
        return Ok(());
    }
    let verb = if files == 1 { "is" } else { "are" };
    Err(CliError::Incomplete { files: format!("{} {verb}", count(files as u64, "file")), rest })
}
