//! `tidetable try`: loads files into a store of their own, shows rows, answers and a page, and forgets the store.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use tempfile::TempDir;
use tidetable_job::scaffold::{Proposal, identifier, propose};
use tidetable_job::{Job, Project, shell_word};
use tidetable_layout::time::SECOND;
use tidetable_page::table_page;
use tidetable_page::view::TimeChart;
use tidetable_runner::record::RunRecord;
use tidetable_runner::{Stop, UlidIds, download, open_store, runtime};
use tidetable_source::{InputFile, Location, Storage, is_http, is_url, redacted};
use tidetable_store::Snapshot;

use crate::activity::Activity;
use crate::args::{Global, Output, RunDays, Sql, Try};
use crate::commands::reports::data_by_time::slice_length;
use crate::commands::reports::describe::page_of;
use crate::commands::run::one::run_one;
use crate::commands::run::options::{ExecutionOptions, options};
use crate::commands::run::summary::quoted;
use crate::commands::sql::sql;
use crate::error::CliError;
use crate::output::sentences;
use crate::output::values::{bytes, count};
use crate::page_file::PageFile;
use crate::signals::stop_on_signals;

/// Rows and groups that a query shows.
const SHOWN: usize = 5;
/// Most slices of time that a query shows.
const SLICES: i64 = 24;

/// Loads the files, and shows what is in them.
pub fn try_files(global: &Global, args: &Try) -> Result<(), CliError> {
    let name = job_name(&args.files);
    let page_path = match &args.report {
        Some(place) => place.clone(),
        None => Location::Path(std::env::temp_dir().join(format!("tidetable-{name}.html"))),
    };
    let page_file = PageFile::of(Some(&page_path))?;

    // Dropped, and so removed, however this ends.
    let place = tempfile::Builder::new()
        .prefix("tidetable-try-")
        .tempdir()
        .map_err(|source| CliError::TempDir { folder: std::env::temp_dir().display().to_string(), source })?;
    let loaded = Loaded::of(global, args, &name, &place)?;
    loaded.tell(global)?;

    let store = open_store(&loaded.project)?;
    let snapshot = store.snapshot(&loaded.proposal.table)?;
    let page = page_of(&store, &snapshot)?;
    let root = Location::Path(PathBuf::from(&loaded.project.root));
    let of_store = Global { root: Some(root), folder: None, ..global.clone() };
    for query in queries(&snapshot, loaded.proposal.entity.as_deref(), page.by_time.as_ref()) {
        show(&of_store, &query)?;
    }

    if let Some(file) = page_file {
        file.write(global, &table_page(&page)?)?;
    }
    if let Location::Path(path) = &page_path {
        open_page(global, args, path);
    }
    tell_how_to_keep(global, args, &name)
}

/// Files that are loaded.
struct Loaded {
    project: Project,
    proposal: Proposal,
    record: RunRecord,
    seconds: f64,
}

impl Loaded {
    /// Proposes the job `name` for the files, and runs it in `place`.
    fn of(global: &Global, args: &Try, name: &str, place: &TempDir) -> Result<Self, CliError> {
        let began = Instant::now();
        let stop = stop_on_signals()?;
        let files = fetched(global, args, place.path(), &stop)?;

        let project = Project::begin(place.path());
        let runtime = runtime()?;
        let storage = Storage::new(project.dir.clone(), Some(runtime.handle().clone()));
        let proposal = {
            let _reading = Activity::begin(global, &format!("reading {}", shown(&args.files)));
            propose(&project, &storage, name, &files, args.timezone)?
        };
        proposal.write(&project, false)?;
        let job = Job::load(&project, name)?;
        check_size(&job, &storage, args.limit)?;

        let ids = UlidIds::default();
        let options = options(&RunDays::default(), job.timezone, &ExecutionOptions::until(stop), &ids)?;
        let quietly = Global { quiet: true, output: Output::Table, ..global.clone() };
        let record = {
            let _loading = Activity::begin(global, &format!("loading {}", shown(&args.files)));
            run_one(&quietly, &project, &job, &options, &ids)?
        };
        let seconds = began.elapsed().as_secs_f64();
        Ok(Self { project, proposal, record: record.unwrap_or_default(), seconds })
    }

    /// Says what was loaded, and as what.
    fn tell(&self, global: &Global) -> Result<(), CliError> {
        if global.output != Output::Table || global.quiet {
            return Ok(());
        }
        let Self { proposal, record, seconds, .. } = self;
        let [mut read, mut rejected, mut files] = [0; 3];
        for load in record.loads.iter().filter(|load| load.table == proposal.table) {
            (read, rejected, files) = (load.stats.rows_read, load.stats.rows_rejected, load.inputs.len() as u64);
        }

        let mut out = sentences(global.output);
        let (rows, files) = (count(read, "row"), count(files, "file"));
        writeln!(out, "{rows} of {files} in {seconds:.1} s; table {}, row key {}", proposal.table, proposal.row_key)?;
        if rejected > 0 {
            writeln!(out, "{} rejected: `tidetable new` and `run` say which, and why", count(rejected, "row"))?;
        }
        for note in &proposal.notes {
            writeln!(out, "note: {note}")?;
        }
        Ok(out.flush()?)
    }
}

/// The names that were given, without what may be secret in them.
fn shown(files: &[String]) -> String {
    files.iter().map(|name| redacted(name)).collect::<Vec<_>>().join(", ")
}

/// The files as paths that do not depend on the current folder, and URLs of buckets; those of the web are copied to `place`.
fn fetched(global: &Global, args: &Try, place: &Path, stop: &Stop) -> Result<Vec<String>, CliError> {
    let here =
        std::env::current_dir().map_err(|source| CliError::File { path: "the current folder".to_owned(), source })?;
    let mut files = Vec::with_capacity(args.files.len());
    for (number, name) in args.files.iter().enumerate() {
        files.push(match name {
            url if is_http(url) => {
                let _fetching = Activity::begin(global, &format!("fetching {}", redacted(url)));
                // Files of several addresses may have one name.
                let folder = place.join(format!("web/{number}"));
                let made = std::fs::create_dir_all(&folder);
                made.map_err(|source| CliError::TempDir { folder: folder.display().to_string(), source })?;
                download(url, &folder, args.limit, stop)?.display().to_string()
            }
            url if is_url(url) => url.clone(),
            path => here.join(path).display().to_string(),
        });
    }
    Ok(files)
}

/// Refuses files that have more than `limit` bytes together.
fn check_size(job: &Job, storage: &Storage, limit: u64) -> Result<(), CliError> {
    for source in &job.sources {
        let found = storage.find(&source.spec).map_err(tidetable_store::StoreError::from)?;
        let size: u64 = found.files.iter().map(|InputFile { size, .. }| size).sum();
        if size > limit {
            return Err(CliError::TooLargeToTry { size: bytes(size), limit: bytes(limit) });
        }
    }
    Ok(())
}

/// A name for the job: that of the first file, as far as names of jobs allow.
fn job_name(files: &[String]) -> String {
    let first = files.first().map(|name| name.split(['?', '#']).next().unwrap_or(name)).unwrap_or_default();
    let last = first.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    let letters = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    let name: String = letters.take(24).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { "readings".to_owned() }
}

/// Queries that show what a table holds: its first rows, and what its columns let one ask. `entity` is the column that tells what
/// was read, `chart` has the measure and the times.
fn queries(snapshot: &Snapshot, entity: Option<&str>, chart: Option<&TimeChart>) -> Vec<String> {
    let layout = snapshot.layout();
    let fields = layout.records_schema();
    let table = quoted(&snapshot.version().table.spec.name);
    let time = layout.event_time_field().and_then(|index| fields.fields().get(index));
    let time = time.map(|field| identifier(field.name()));
    let measure = chart.map(|chart| chart.measure.as_str()).filter(|name| !name.is_empty()).map(identifier);
    let mean = measure.as_ref().map(|name| format!(", avg({name}) AS mean")).unwrap_or_default();

    let mut queries = vec![format!("SELECT * FROM {table} LIMIT {SHOWN}")];
    queries.push(match &time {
        Some(time) => format!("SELECT count(*) AS rows, min({time}) AS first, max({time}) AS last FROM {table}"),
        None => format!("SELECT count(*) AS rows FROM {table}"),
    });
    if let Some(entity) = entity.filter(|name| fields.field_with_name(name).is_ok()).map(identifier) {
        let order = if measure.is_some() { "mean" } else { "rows" };
        queries.push(format!(
            "SELECT {entity}, count(*) AS rows{mean} FROM {table} GROUP BY {entity} ORDER BY {order} DESC LIMIT {SHOWN}"
        ));
    }
    if let (Some(time), Some(chart)) = (&time, chart) {
        let slice = interval(slice_of(chart));
        queries.push(format!(
            "SELECT time_bucket(INTERVAL '{slice}', {time}) AS time, count(*) AS rows{mean} FROM {table} GROUP BY 1 ORDER BY 1"
        ));
    }
    queries
}

/// The least length of slices, in seconds, of which few cover the times of a chart.
fn slice_of(chart: &TimeChart) -> i64 {
    let (first, last) = match (chart.slices.first(), chart.slices.last()) {
        (Some(first), Some(last)) => (first.start / SECOND, last.start / SECOND + chart.slice),
        _ => return chart.slice,
    };
    slice_length(last - first, SLICES)
}

/// An interval as SQL has it: `15 minutes`.
fn interval(seconds: i64) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let unit = units.into_iter().find(|(length, _)| seconds % length == 0);
    let (length, name) = unit.unwrap_or((1, "second"));
    let number = seconds / length;
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

/// Shows a query and its rows.
fn show(global: &Global, query: &str) -> Result<(), CliError> {
    if global.output == Output::Table && !global.quiet {
        let mut out = sentences(global.output);
        writeln!(out, "\n{query};")?;
        out.flush()?;
    }
    let args = Sql {
        statements: Some(query.to_owned()),
        query: None,
        file: None,
        memory: None,
        on: None,
        to: None,
        max_rows: None,
        timing: false,
        version: Vec::new(),
        as_of_commit: None,
    };
    sql(global, &args)
}

/// Opens the page in a browser, if there is somebody to see it.
fn open_page(global: &Global, args: &Try, page: &Path) {
    let has_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let has_screen =
        cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if args.no_open || global.quiet || !has_terminal || !has_screen {
        return;
    }

    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(opener);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The message above names the page; without a browser that is all there is.
    let _ = command.spawn();
}

/// Says which commands load the files for good.
fn tell_how_to_keep(global: &Global, args: &Try, name: &str) -> Result<(), CliError> {
    if global.output != Output::Table || global.quiet {
        return Ok(());
    }
    let files: Vec<String> = args.files.iter().map(|file| shell_word(file)).collect();
    let mut out = sentences(global.output);
    writeln!(out, "\nNothing was kept. To load {} for good:", if files.len() == 1 { "it" } else { "them" })?;
    let from =
        if args.files.iter().any(|file| is_http(file)) { "FILE, a copy of it".to_owned() } else { files.join(" ") };
    writeln!(out, "  tidetable new {name} --from {from}")?;
    writeln!(out, "  tidetable run {name}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_after_their_files() {
        for (file, name) in [
            ("in/Wind-Power 2020.csv.gz", "wind_power_2020"),
            ("in/", "in"),
            ("https://example.org/a/readings.csv?key=x", "readings"),
            ("2020-01-01.csv", "readings"),
            ("*.csv", "readings"),
            (".", "readings"),
        ] {
            assert_eq!(job_name(&[file.to_owned()]), name, "{file}");
        }
    }

    #[test]
    fn intervals_are_words_of_sql() {
        assert_eq!([1, 900, 3_600, 604_800].map(interval), ["1 second", "15 minutes", "1 hour", "7 days"]);
    }
}
