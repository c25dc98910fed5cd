//! `tidetable verify`: reads tables, exports and records and checks that they are intact.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_blobs::BlobError;
use tidetable_export::{LogFinding, log_findings};
use tidetable_layout::time::window_name;
use tidetable_runner::record::{KnownVersions, Runs, holder};
use tidetable_runner::report::{RejectFile, reject_files};
use tidetable_runner::{Marks, RunError};
use tidetable_store::published::{FileState, Published};
use tidetable_store::{Store, StoreError};
use tidetable_upkeep::{TableReport, VerifyOptions};

use crate::activity::Activity;
use crate::args::{Global, Output, Verify};
use crate::commands::{project_of_store, store, sums, table_or_all};
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};

/// Verifies a table or all tables, the files of exports, or the whole store.
pub fn verify(global: &Global, args: &Verify) -> Result<(), CliError> {
    let store = store(global)?;
    let options = VerifyOptions { all_versions: args.all_versions, checksums_only: args.checksums };

    let mut out = sentences(global.output);
    let mut damaged = 0;
    let mut kinds = DamagedKinds::default();
    let mut rows = ResultRows::of(objects::VERIFIED);
    let tables = if args.exports { Vec::new() } else { table_or_all(&store, args.table.as_deref())? };
    if args.table.is_none() && !args.exports {
        let project = project_of_store(global)?;
        for lost in Marks::of(&project).lost_tables(&project, &store)? {
            match global.output {
                Output::Table => writeln!(out, "{}: lost; {lost}", lost.table)?,
                _ => rows.push(row![lost.table, (), (), (), (), (), (), false, lost.to_string(), "table"]),
            }
            damaged += 1;
            kinds.manifests = true;
        }
    }
    let named = KnownVersions::of(store.blobs().as_ref(), &tables, usize::MAX)?;

    for name in tables {
        let table = store.table(&name);
        let activity = Activity::begin(global, &format!("verifying {name}"));
        let mut report = tidetable_upkeep::verify(&table, options)?;
        drop(activity);
        // A table that cannot be read is in the report already.
        if let Ok(Some(newest)) = table.latest() {
            report.manifests.extend(named.check(&store, &name, &newest).err());
        }

        damaged += report.manifests.len() + report.rows.len() + report.damaged().count();
        let newest = report.versions.last().copied().unwrap_or_default();
        kinds.manifests |= !report.manifests.is_empty();
        kinds.rows |= !report.rows.is_empty();
        kinds.ssts |= report.damaged().any(|sst| sst.version == newest);
        kinds.old_ssts |= report.damaged().any(|sst| sst.version < newest);

        match global.output {
            Output::Table => tell(&report, global.verbose, &mut out)?,
            _ => add(&store, &report, &mut rows),
        }
    }

    let mut files = Vec::new();
    if args.exports || args.all {
        files.extend(published(&store)?);
    }
    if args.all {
        files.extend(records(&store)?);
        files.extend(rejects(&store)?);
    }

    damaged += files.iter().filter(|file| !file.is_sound()).count();
    match global.output {
        Output::Table => tell_files(&files, &mut out)?,
        _ => files.iter().for_each(|file| rows.push(file.row())),
    }
    if global.output != Output::Table {
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;

    if damaged == 0 {
        return Ok(());
    }

    let of_kind = |kind: &str| files.iter().any(|file| file.kind == kind && !file.is_sound());
    kinds.exports = of_kind("export");
    kinds.records = of_kind("record");
    kinds.rejects = of_kind("rejects");
    Err(CliError::Damaged { files: count(damaged as u64, "file"), advice: advice(&kinds) })
}

/// The kinds of files that are damaged.
#[derive(Debug, Default)]
struct DamagedKinds {
    manifests: bool,
    /// Rows over a limit.
    rows: bool,
    /// SSTs of newest versions.
    ssts: bool,
    /// SSTs that only older versions name.
    old_ssts: bool,
    exports: bool,
    records: bool,
    /// Files of rejected rows.
    rejects: bool,
}

/// What mends the damage with the least effort, by what is damaged.
fn advice(damaged: &DamagedKinds) -> String {
    let mut steps = Vec::new();
    if damaged.manifests {
        steps.push("run `tidetable doctor`, which says what damaged manifests cost");
    }

    if damaged.rows {
        steps.push("change rows over a limit as their messages say");
    }

    if damaged.ssts {
        steps.push(
            "take damaged SSTs out with `tidetable repair TABLE --yes`, so that the next run of the job rebuilds their \
             windows, or restore a backup",
        );
    }

    if damaged.old_ssts {
        steps.push("remove older versions with damaged SSTs by `tidetable vacuum TABLE --older-than 0s --yes`");
    }

    if damaged.exports {
        steps.push(
            "run the job, which publishes changed and missing files again, and with --force those whose damage left no trace",
        );
    }

    if damaged.records {
        steps.push("move damaged records away with `tidetable doctor --fix`");
    }

    if damaged.rejects {
        steps.push("run `tidetable doctor`, which says what damaged files of rejected rows cost");
    }

    steps.join("; ")
}

/// A file outside tables.
struct OtherFile {
    kind: &'static str,
    /// The export or the job.
    of: String,
    path: String,
    /// For an export: the part.
    label: Option<String>,
    bytes: Option<u64>,
    /// What is wrong; empty if intact.
    damage: String,
}

impl OtherFile {
    /// A file of an export whose part and size are unknown.
    fn of_export(export: &str, path: &str, damage: String) -> Self {
        Self { kind: "export", of: export.to_owned(), path: path.to_owned(), label: None, bytes: None, damage }
    }

    fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn row(&self) -> Vec<Value> {
        row![self.of, self.path, self.label, (), self.bytes, (), (), self.is_sound(), self.damage, self.kind]
    }
}

/// The lists of exports, and the files that they name.
fn published(store: &Store) -> Result<Vec<OtherFile>, CliError> {
    let blobs = store.blobs().as_ref();
    let mut files = Vec::new();
    let names = blobs.list("exports")?;

    for name in names.iter().filter_map(|name| name.strip_suffix(".json")) {
        let list = match Published::load(blobs, name) {
            Ok(list) => list,
            Err(error) => {
                files.push(OtherFile::of_export(name, &format!("exports/{name}.json"), error.to_string()));
                continue;
            }
        };
        for (label, part) in &list.parts {
            for (path, listed) in part.files_at() {
                let damage = match listed.verify(blobs, &path) {
                    Ok(FileState::Missing) => "it is missing".to_owned(),
                    Ok(FileState::Another) if list.is_older_than(blobs, &path)? => format!(
                        "it is newer than its list: a run replaced it and stopped before it wrote the list, killed or on a full disk, \
                         or it was exchanged since; `tidetable run {}` publishes and lists it again",
                        list.job
                    ),
                    Ok(FileState::Changed | FileState::Another) => {
                        "its bytes differ from those that were published".to_owned()
                    }
                    Ok(FileState::AsPublished | FileState::SameBytes(_)) => String::new(),
                    Err(error) => error.to_string(),
                };
                let file = OtherFile::of_export(name, &path, damage);
                files.push(OtherFile { label: Some(label.clone()), bytes: Some(listed.bytes), ..file });
            }
        }

        // While the job runs, its list is ahead of the log.
        if holder(blobs, &list.job)?.is_none() {
            for LogFinding { path, damage, .. } in log_findings(blobs, &list).map_err(RunError::from)? {
                files.push(OtherFile::of_export(name, &path, damage));
            }
        }
    }

    Ok(files)
}

/// The run records.
fn records(store: &Store) -> Result<Vec<OtherFile>, CliError> {
    let blobs = store.blobs().as_ref();
    let runs = Runs::of(blobs);
    let mut files = Vec::new();
    for run in runs.names()? {
        let (of, damage) = match runs.load(&run) {
            // `clean` removed it after the names were listed.
            Ok(None) => continue,
            Ok(Some(record)) => (record.job, String::new()),
            Err(error) => (String::new(), error.to_string()),
        };

        let path = format!("runs/{run}.json");
        let bytes = blobs.stat(&path).ok().flatten().map(|found| found.bytes);
        files.push(OtherFile { kind: "record", of, path, label: None, bytes, damage });
    }
    Ok(files)
}

/// The files of rejected rows.
fn rejects(store: &Store) -> Result<Vec<OtherFile>, CliError> {
    let file = |RejectFile { path, bytes, damage, .. }| {
        let damage = damage.map(|damage| damage.to_string()).unwrap_or_default();
        OtherFile { kind: "rejects", of: String::new(), path, label: None, bytes: Some(bytes), damage }
    };
    Ok(reject_files(store.blobs().as_ref())?.into_iter().map(file).collect())
}

/// A line for each export, one for all records, one for all rejected rows, and one for each damaged file.
fn tell_files(files: &[OtherFile], out: &mut impl Write) -> Result<(), CliError> {
    let mut groups: Vec<(String, Vec<&OtherFile>)> = Vec::new();
    for file in files {
        let name = match file.kind {
            "export" => format!("exports.{}", file.of),
            "rejects" => "rejected rows".to_owned(),
            _ => "records of runs".to_owned(),
        };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, files)) => files.push(file),
            None => groups.push((name, vec![file])),
        }
    }

    for (name, files) in groups {
        let state = if files.iter().all(|file| file.is_sound()) { "sound" } else { "damaged" };
        let size = bytes(files.iter().filter_map(|file| file.bytes).sum());
        writeln!(out, "{name}: {state}; {} of {size}", count(files.len() as u64, "file"))?;

        for file in files.iter().filter(|file| !file.is_sound()) {
            // An error of the file begins with its path.
            match file.damage.starts_with(&file.path) {
                true => writeln!(out, "  {}", file.damage)?,
                false => writeln!(out, "  {}: {}", file.path, file.damage)?,
            }
        }
    }
    Ok(())
}

fn tell(report: &TableReport, verbose: bool, out: &mut impl Write) -> Result<(), CliError> {
    let [_, cells, size] = sums(report.ssts.iter().map(|file| &file.sst));
    let versions = match report.versions.as_slice() {
        [] => "no version that can be read".to_owned(),
        [one] => format!("version {one}"),
        [first, .., last] => format!("versions {first} to {last}"),
    };
    let ssts = format!("{} of {}", count(report.ssts.len() as u64, "SST"), bytes(size));
    let state = if report.is_sound() { "sound" } else { "damaged" };
    writeln!(out, "{}: {state}; {versions}, {ssts}, {}", report.table, count(cells, "cell"))?;

    for error in report.manifests.iter().chain(&report.rows) {
        writeln!(out, "  {error}")?;
    }
    for file in report.damaged() {
        findings(&file.damage, verbose).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

/// The damage of a file as lines: each stripe and range of row keys may have some, so unless `verbose` the first stands for all.
pub(super) fn findings(damage: &[StoreError], verbose: bool) -> Vec<String> {
    match damage {
        [first, rest @ ..] if !verbose && !rest.is_empty() => {
            vec![format!("{first} (the first of {} findings; --verbose lists all)", damage.len())]
        }
        all => all.iter().map(ToString::to_string).collect(),
    }
}

fn add(store: &Store, report: &TableReport, rows: &mut ResultRows) {
    let table = store.table(&report.table);
    let window_of = table.latest().ok().flatten().map(|version| version.table.spec.window);
    for error in report.manifests.iter().chain(&report.rows) {
        let file = match error {
            StoreError::Manifest { path, .. } | StoreError::Blob(BlobError::Io { path, .. }) => json!(path),
            _ => json!(null),
        };
        rows.push(row![report.table, file, (), (), (), (), (), false, error.to_string(), "table"]);
    }

    for file in &report.ssts {
        let damage: Vec<String> = file.damage.iter().map(ToString::to_string).collect();
        rows.push(row![
            report.table,
            table.sst_path(&file.sst.id),
            window_of.map(|window| window_name(window, file.window)),
            file.version,
            file.sst.bytes,
            file.sst.rows,
            file.sst.cells,
            damage.is_empty(),
            damage.join("; "),
            "table"
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_takes_a_line_unless_verbose() {
        let damage = |reason| StoreError::Swapped { path: "tables/T/sst/A.sst".to_owned(), reason };
        let all = [damage("one"), damage("two"), damage("three")];
        let [line] = &findings(&all, false)[..] else { panic!("one line") };
        assert!(
            line.contains("names: one;") && line.ends_with(" (the first of 3 findings; --verbose lists all)"),
            "{line}"
        );
        assert_eq!(findings(&all, true).len(), 3);
        assert_eq!(findings(&all[..1], false), [damage("one").to_string()]);
        assert!(findings(&[], false).is_empty());
    }
}
