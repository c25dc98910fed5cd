//! `tidetable pull`: reads rows of Bigtable into files that a job loads.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tidetable_bigtable::BigtableError;
use tidetable_bigtable::client::{SourceTable, TableName};
use tidetable_bigtable::pull::{
    Decoder, Pull as BigtablePull, PullCounts, PullReport, PullSelection, Pulled, RawDecoder, RawJob, RawSchema,
    RecordDecoder,
};
use tidetable_job::scaffold::as_pattern;
use tidetable_job::{Job, JobError, Project, Table, TableInput};
use tidetable_runner::{UlidIds, runtime};
use tidetable_source::MaxRejected;
use tidetable_store::{Ids, ulid_text};

use super::{client, target};
use crate::args::{Global, Output, Pull};
use crate::commands::project;
use crate::commands::ranges::{check_times, key_range};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::count;
use crate::output::{ResultRows, row, sentences};
use crate::signals::stop_on_signals;

/// Pulls the rows of a table in Bigtable into Parquet files, and says how many were read, written and rejected.
pub fn pull(global: &Global, args: &Pull) -> Result<(), CliError> {
    let project = project(global)?;
    let selection = selection(args)?;
    let runtime = runtime()?;
    let client = client(&args.service, runtime.handle())?;
    let source = target(&args.source)?.table().map_err(|error| CliError::Bigtable(error.into()))?;
    let table = runtime.block_on(client.source_schema(&source))?;
    table.has(&args.families, &source)?;

    let Prepared { decoder, directory, written, limit } = match args.raw {
        true => Raw::plan(args, &project, &source, &table)?.prepared(),
        false => records(args, &project, source.id())?,
    };

    let pull = BigtablePull {
        client,
        source: source.clone(),
        selection,
        decoder: Arc::new(decoder),
        directory: directory.clone(),
        name: ulid_text(UlidIds::default().next()),
        replaces: args.replace,
        workers: args.service.parallel.into(),
        stop: stop_on_signals()?,
    };

    let begun = Instant::now();
    let watch = |counts: &PullCounts| {
        let rate = counts.cells as f64 / begun.elapsed().as_secs_f64().max(0.001);
        print_message(global, &format!("{}: {} read, {rate:.0} cells/s", source.id(), count(counts.cells, "cell")));
    };
    let pulled = pull.read(&watch, runtime.handle())?;
    if let Some(limit) = limit.filter(|limit| limit.is_exceeded(pulled.counts())) {
        return Err(limit.error(&source, &project, pulled));
    }

    // Before the files are listed: a job may lack files for a family, but files must not have one that the job lacks.
    if let Some(file) = written {
        file.write()?;
        print_message(global, &format!("wrote {}", file.path.display()));
    }
    let report = pulled.publish()?;
    let seconds = begun.elapsed().as_secs_f64();
    let origin = Origin { source: &source, directory: &directory, project: &project };
    print(global, args, &origin, &report, seconds)
}

/// Which rows and cells are asked for.
fn selection(args: &Pull) -> Result<PullSelection, CliError> {
    // No cell is older than the epoch, and the service takes 0 as no end.
    check_times(Some(args.from.unwrap_or(0).max(0)), args.to)?;
    Ok(PullSelection {
        range: key_range(args.prefix.as_deref(), args.start.as_deref(), args.end.as_deref())?,
        families: args.families.clone(),
        from: args.from,
        to: args.to,
        versions: args.cells_per_column,
        sample: args.sample,
    })
}

/// How rows are written, and where.
struct Prepared {
    decoder: Decoder,
    directory: PathBuf,
    /// The job file, where it is new or follows other families.
    written: Option<JobText>,
    /// How many rows may be left out; any number of cells that are pulled as they are.
    limit: Option<Limit>,
}

/// How many rows a table of a job may lack.
struct Limit {
    table: String,
    most: MaxRejected,
    floor: u64,
}

impl Limit {
    fn is_exceeded(&self, counts: PullCounts) -> bool {
        // As of the inputs of a run: beyond half, it is the layout that is wrong, and not single rows.
        let is_floor_kept = counts.rejected <= self.floor && counts.rejected <= counts.rows / 2;
        self.most.exceeded(counts.rejected, counts.rows) && !is_floor_kept
    }

    /// The error of a pull that leaves out more, which is given up.
    fn error(self, source: &TableName, project: &Project, pulled: Pulled) -> CliError {
        let counts = pulled.counts();
        match pulled.give_up() {
            Ok(list) => CliError::Bigtable(BigtableError::TooManyUndecoded {
                source_table: source.to_string(),
                table: self.table,
                rejected: counts.rejected,
                read: counts.rows,
                limit: self.most.to_string(),
                list: list.map(|path| relative(project, &path)).unwrap_or_default(),
            }),
            Err(error) => error.into(),
        }
    }
}

/// Through the layout of a table of the job.
fn records(args: &Pull, project: &Project, id: &str) -> Result<Prepared, CliError> {
    let job = Job::load(project, &args.into)?;
    let name = args.table.as_deref().unwrap_or(id);
    let table = match (job.table(name), job.tables.as_slice(), &args.table) {
        (Some(table), ..) => table,
        (None, [only], None) => only,
        _ => return Err(CliError::Usage("the job has no table of this name: choose one with --table TABLE")),
    };
    let decoder = RecordDecoder::new(&table.spec.name, Arc::new(table.layout.clone()))?;
    let directory = match &args.dir {
        Some(directory) => given(project, directory),
        None => place(project, &job, table)?,
    };

    let source = match &table.from {
        TableInput::Source(name) => job.source(name).map(|source| &source.spec),
        _ => None,
    };
    let limit = source.map(|source| Limit {
        table: table.spec.name.clone(),
        most: source.max_rejected,
        floor: source.rejected_floor,
    });
    Ok(Prepared { decoder: Decoder::Records(decoder), directory, written: None, limit })
}

/// The directory of the first pattern of the table's source that takes files of a pull.
fn place(project: &Project, job: &Job, table: &Table) -> Result<PathBuf, CliError> {
    let TableInput::Source(name) = &table.from else {
        return Err(CliError::Usage("the table is made by a query, not from files: pull into one that reads a source"));
    };
    let source = job.source(name);
    if source.is_some_and(|source| !source.derive.is_empty()) {
        return Err(CliError::Usage(
            "the source derives columns, which rows of Bigtable do not tell apart from the others: pull into a job without \
             `derive`, or with --raw",
        ));
    }
    let patterns = source.map(|source| source.spec.files.as_slice()).unwrap_or_default();
    match patterns.iter().find_map(|pattern| directory_of(pattern)) {
        Some(directory) => Ok(project.dir.join(directory)),
        None => Err(CliError::NoPlace { job: job.name.clone(), source_name: name.clone() }),
    }
}

/// The directory of a pattern that takes the files of a pull into it.
fn directory_of(pattern: &str) -> Option<String> {
    let (directory, file) = pattern.rsplit_once('/').unwrap_or((".", pattern));
    // Letters in brackets stand for themselves.
    let mut plain = directory.to_owned();
    for letter in ["*", "?", "[", "]", "{", "}"] {
        plain = plain.replace(&format!("[{letter}]"), letter);
    }
    let is_plain = as_pattern(&plain) == directory && !pattern.contains("://");
    (is_plain && matches!(file, "*.parquet" | "part-*.parquet" | "*")).then_some(plain)
}

/// A pull of cells as they are, and the job that loads it.
struct Raw {
    schema: RawSchema,
    directory: PathBuf,
    /// The job file, where it is new or follows other families.
    written: Option<JobText>,
}

/// A job file that is valid, and not yet written.
struct JobText {
    path: PathBuf,
    text: String,
}

impl Raw {
    /// Decides on columns and the job file; writes nothing.
    fn plan(args: &Pull, project: &Project, source: &TableName, table: &SourceTable) -> Result<Self, CliError> {
        if table.families.is_empty() {
            return Err(BigtableError::NoFamilies { source_table: source.to_string() }.into());
        }

        let job = match Job::load(project, &args.into) {
            Ok(job) => job,
            Err(JobError::Unknown { .. }) => return Self::of_new_job(args, project, source, table),
            Err(error) => return Err(error.into()),
        };

        let raw = RawJob::of(&job).ok_or_else(|| CliError::NotRaw { job: job.name.clone() })?;
        let directory = match (&args.dir, job.table(&raw.table)) {
            (Some(directory), _) => given(project, directory),
            (None, Some(table)) => place(project, &job, table)?,
            (None, None) => return Err(CliError::NotRaw { job: job.name.clone() }),
        };

        if let Some(made_for) = raw.made_for.as_ref().filter(|made_for| **made_for != source.to_string())
            && !args.replace
        {
            let (held, asked) = (format!("the cells of {made_for}"), format!("those of {source}"));
            return Err(BigtableError::OtherPull { directory: job.shown_path.clone(), held, asked }.into());
        }

        let schema = raw.schema(table, &args.families);
        let text = raw.follow(&job.text, &schema, &raw.gone(table));
        let text = match &raw.made_for {
            Some(made_for) => {
                text.replacen(&format!("The cells of {made_for},"), &format!("The cells of {source},"), 1)
            }
            None => text,
        };

        let written = (text != job.text).then(|| JobText { path: job.path.clone(), text });
        if let Some(file) = &written {
            Job::of_text(project, file.path.clone(), file.text.clone()).map_err(|error| CliError::CannotFollow {
                job: job.name.clone(),
                table: source.to_string(),
                source: Box::new(error),
            })?;
        }

        Ok(Self { schema, directory, written })
    }

    fn prepared(self) -> Prepared {
        let decoder = RawDecoder::new(self.schema.families, self.schema.is_micros);
        Prepared { decoder: Decoder::Raw(decoder), directory: self.directory, written: self.written, limit: None }
    }

    fn of_new_job(args: &Pull, project: &Project, source: &TableName, table: &SourceTable) -> Result<Self, CliError> {
        let directory = match &args.dir {
            Some(directory) => given(project, directory),
            None => project.dir.join("pulled").join(&args.into),
        };
        let schema = RawSchema::new(table, &args.families);
        let pattern = format!("{}/*.parquet", as_pattern(&relative(project, &directory)));
        let text = schema.job_file(&args.into, source.id(), &pattern, &source.to_string());
        let path = project.dir.join("jobs").join(&args.into).join("job.toml");
        // The job must be valid before hours of reading.
        Job::of_text(project, path.clone(), text.clone())?;
        Ok(Self { schema, directory, written: Some(JobText { path, text }) })
    }
}

impl JobText {
    /// Writes it aside and puts it in its place.
    fn write(&self) -> Result<(), CliError> {
        let failed = |source| CliError::File { path: self.path.display().to_string(), source };
        let aside = self.path.with_extension("new");
        std::fs::create_dir_all(self.path.parent().unwrap_or(&self.path)).map_err(failed)?;
        let written = std::fs::write(&aside, &self.text).and_then(|()| std::fs::rename(&aside, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&aside);
        }
        written.map_err(failed)
    }
}

/// A directory of the command line, which is relative to the current one.
fn given(project: &Project, directory: &Path) -> PathBuf {
    project.dir.join(project.given(&directory.to_string_lossy()))
}

/// A path as a job file names it.
fn relative(project: &Project, directory: &Path) -> String {
    directory.strip_prefix(&project.dir).unwrap_or(directory).display().to_string()
}

/// Where rows were pulled from, and where their files are.
struct Origin<'a> {
    source: &'a TableName,
    directory: &'a Path,
    project: &'a Project,
}

fn print(global: &Global, args: &Pull, origin: &Origin<'_>, report: &PullReport, seconds: f64) -> Result<(), CliError> {
    let Origin { source, directory, project } = origin;
    let PullReport { counts, files, kept, rejected } = report;
    let mut out = sentences(global.output);
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
            counts.cells_written(),
            counts.cells_rejected,
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
        let (read, written, left_out) = (counts.cells, counts.cells_written(), counts.cells_rejected);
        writeln!(out, "  {} read = {written} written + {left_out} rejected", count(read, "cell"))?;
        if *kept > 0 {
            writeln!(out, "  {} were there from a pull that did not end", count(*kept as u64, "file"))?;
        }
        if let Some(path) = rejected {
            let rows = count(counts.rejected, "row");
            writeln!(out, "  {rows} could not be taken whole, with their keys in {}", relative(project, path))?;
        }
        writeln!(out, "\nTry next:\n  tidetable run {}", args.into)?;
    }

    out.flush()?;
    Ok(())
}
