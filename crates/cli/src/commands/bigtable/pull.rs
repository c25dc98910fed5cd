//! `tidetable pull`: reads rows of Bigtable into files that a job loads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tidetable_bigtable::BigtableError;
use tidetable_bigtable::client::{Client, TableName};
use tidetable_bigtable::pull::{
    Decoder, Pull as BigtablePull, PullCounts, PullReport, PullSelection, RawDecoder, RecordDecoder, raw_job,
};
use tidetable_runner::job::{Job, Table, TableInput};
use tidetable_runner::{Project, runtime};
use tokio::runtime::Handle;

use super::{client, range, target};
use crate::args::{Global, Output, Pull};
use crate::commands::project;
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::count;
use crate::output::{ResultRows, row, stdout};
use crate::signals::stop_on_signals;

/// Pulls the rows.
pub fn pull(global: &Global, args: &Pull) -> Result<(), CliError> {
    let project = project(global)?;
    let runtime = runtime()?;
    let client = client(&args.service, runtime.handle())?;
    let source = target(&args.source)?.table().map_err(|error| CliError::Bigtable(error.into()))?;
    let (decoder, directory) = match args.raw {
        true => raw(global, args, &project, (&client, &source), runtime.handle())?,
        false => records(args, &project, source.id())?,
    };
    let pull = BigtablePull {
        client,
        source: source.clone(),
        selection: PullSelection {
            range: range(args.prefix.as_deref(), args.start.as_deref(), args.end.as_deref()),
            families: args.families.clone(),
            from: args.from,
            to: args.to,
            versions: args.cells_per_column,
            sample: args.sample,
        },
        decoder: Arc::new(decoder),
        directory: directory.clone(),
        workers: args.service.parallel.into(),
        stop: stop_on_signals()?,
    };
    let begun = Instant::now();
    let watch = |counts: &PullCounts| {
        let rate = counts.cells as f64 / begun.elapsed().as_secs_f64().max(0.001);
        print_message(global, &format!("{}: {} read, {rate:.0} cells/s", source.id(), count(counts.cells, "cell")));
    };
    let report = pull.run(&watch, runtime.handle())?;
    let seconds = begun.elapsed().as_secs_f64();
    print(global, args, (&source, &directory, &project), &report, seconds)
}

/// Through the layout of a table of the job.
fn records(args: &Pull, project: &Project, id: &str) -> Result<(Decoder, PathBuf), CliError> {
    let job = Job::load(project, &args.into)?;
    let name = args.table.as_deref().unwrap_or(id);
    let table = match (job.table(name), job.tables.as_slice(), &args.table) {
        (Some(table), ..) => table,
        (None, [only], None) => only,
        _ => return Err(CliError::Usage("the job has no table of this name: choose one with --table TABLE")),
    };
    let decoder = RecordDecoder::new(&table.spec.name, Arc::new(table.layout.clone()))?;
    let directory = match &args.dir {
        Some(directory) => directory.clone(),
        None => place(project, &job, table)?,
    };
    Ok((Decoder::Records(decoder), directory))
}

/// The directory of the first pattern of the table's source that takes files of a pull.
fn place(project: &Project, job: &Job, table: &Table) -> Result<PathBuf, CliError> {
    let TableInput::Source(name) = &table.from else {
        return Err(CliError::Usage("the table is made by a query, not from files: pull into one that reads a source"));
    };
    let source = job.sources.iter().find(|source| source.spec.name == *name);
    if source.is_some_and(|source| !source.derive.is_empty()) {
        return Err(CliError::Usage(
            "the source derives columns, which rows of Bigtable do not tell apart from the others: pull into a job without \
             `derive`, or with --raw",
        ));
    }
    let patterns = source.map(|source| source.spec.files.as_slice()).unwrap_or_default();
    let fits = |pattern: &&String| {
        let (directory, file) = pattern.rsplit_once('/').unwrap_or((".", pattern));
        let is_plain = !directory.contains(['*', '?', '{', '[']) && !pattern.contains("://");
        is_plain && matches!(file, "*.parquet" | "part-*.parquet" | "*")
    };
    match patterns.iter().find(fits) {
        Some(pattern) => {
            let directory = pattern.rsplit_once('/').map_or(".", |(directory, _)| directory);
            Ok(project.dir.join(directory))
        }
        None => {
            Err(CliError::NoPlace { job: job.name.clone(), source_name: name.clone(), table: table.spec.name.clone() })
        }
    }
}

/// Cell by cell, into a job that is made if it is not there.
fn raw(
    global: &Global,
    args: &Pull,
    project: &Project,
    (client, source): (&Client, &TableName),
    runtime: &Handle,
) -> Result<(Decoder, PathBuf), CliError> {
    let families = runtime.block_on(client.families(source))?;
    let families = families.ok_or_else(|| BigtableError::NoSource { source_table: source.to_string() })?;
    let kept: Vec<(String, Option<String>)> =
        families.into_iter().filter(|(name, _)| args.families.is_empty() || args.families.contains(name)).collect();
    let directory = args.dir.clone().unwrap_or_else(|| project.dir.join("pulled").join(&args.into));
    let path = project.dir.join("jobs").join(&args.into).join("job.toml");
    if !path.exists() {
        let pattern = relative(project, &directory);
        let text = raw_job(&args.into, source.id(), &format!("{pattern}/*.parquet"), &source.to_string(), &kept);
        let failed = |source| CliError::File { path: path.display().to_string(), source };
        std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        std::fs::write(&path, text).map_err(failed)?;
        print_message(global, &format!("wrote {}", path.display()));
    }
    // Whatever is in the file, the job must be valid before hours of reading.
    Job::load(project, &args.into)?;
    let names = kept.into_iter().map(|(name, _)| name).collect();
    Ok((Decoder::Raw(RawDecoder::new(names)), directory))
}

/// A path as a job file names it.
fn relative(project: &Project, directory: &Path) -> String {
    directory.strip_prefix(&project.dir).unwrap_or(directory).display().to_string()
}

fn print(
    global: &Global,
    args: &Pull,
    (source, directory, project): (&TableName, &Path, &Project),
    report: &PullReport,
    seconds: f64,
) -> Result<(), CliError> {
    let PullReport { counts, files, kept, rejected } = report;
    let mut out = stdout();
    let place = relative(project, directory);
    if global.output != Output::Table {
        let mut rows = ResultRows::of(objects::PULLED);
        let rejects = rejected.as_ref().map(|path| relative(project, path));
        rows.push(row![
            source.to_string(),
            args.into,
            place,
            files,
            counts.rows,
            counts.cells,
            counts.records,
            counts.rejected,
            rejects,
            seconds
        ]);
        rows.write(global.output, &mut out)?;
    } else {
        let rate = counts.cells as f64 / seconds.max(0.001);
        writeln!(
            out,
            "{source}: {} of {} read in {seconds:.1} s ({rate:.0} cells/s), {} in {} of {place}",
            count(counts.cells, "cell"),
            count(counts.rows, "row"),
            count(counts.records, "record"),
            count(*files as u64, "file"),
        )?;
        if *kept > 0 {
            writeln!(out, "  {} were there from a pull that did not end", count(*kept as u64, "file"))?;
        }
        if let Some(path) = rejected {
            let rows = count(counts.rejected, "row");
            writeln!(out, "  {rows} could not be decoded, with their keys in {}", relative(project, path))?;
        }
        writeln!(out, "\nTry next:\n  tidetable run {}", args.into)?;
    }
    out.flush()?;
    Ok(())
}
