//! Reads `[exports.NAME]`.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use tidetable_export::{ColumnTypes, FileFormat, LEAST_SNAPSHOT_RETENTION, LogPlace, SNAPSHOT_RETENTION, TableLog};
use tidetable_source::{is_http, redacted};

use crate::calendar::per::Per;
use crate::calendar::period::Period;
use crate::calendar::template::{Placeholder, TimeTemplate};
use crate::file::fields::{Fields, Named, Reader, Text};
use crate::file::keys::{CATALOG, EXPORT, QUERY};
use crate::file::names::Id;
use crate::file::problem::Mistake;
use crate::file::sections::storage::{SettingValue, elsewhere};
use crate::size::{parse_age, parse_size};

/// A published query of a job, of which each period is a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Key of the export in the job file, by which SQL and messages name it.
    pub name: String,
    /// What one part covers: a day, an hour, a month, or all rows.
    pub per: Per,
    /// Template of the names of parts, which are paths below `exports/`.
    pub name_template: TimeTemplate,
    /// The format of its files. Those that hold cells rather than rows need `per = "query"`.
    pub format: FileFormat,
    /// What a part does to the one before of the same name.
    pub mode: ExportMode,
    /// Columns that identify a row, for [`ExportMode::Upsert`]; empty for other modes.
    pub keys: Vec<String>,
    /// Bytes after which a part continues in another file.
    pub file_size: u64,
    /// The log of a table that is kept beside the files.
    pub log: Option<TableLog>,
    /// The name of the column of the day that files have where the query lacks it; `None` without `day_column`. Files of an
    /// Iceberg table have it wherever parts have a day.
    pub day_column: Option<String>,
    /// Whether decimals are doubles in the files, for readers that know no decimals.
    pub float_decimals: bool,
    /// How long files that were replaced stay for readers of older versions of the log, microseconds.
    pub snapshot_retention: i64,
    /// The SQL text, with `$day`, `$from`, `$to` and `$now` where it uses them.
    pub sql: String,
    /// The absolute path of the file that holds the query; `None` if the job file itself does.
    pub sql_path: Option<PathBuf>,
    /// Byte range in the job file of the query or of the name of its file.
    pub sql_at: Range<usize>,
}

impl Export {
    /// The format of its files and its mode, for fingerprints: lists of exports hold them, so these names never change.
    pub fn stored_form(&self) -> String {
        let per = match self.per {
            Per::Day => "Day",
            Per::Hour => "Hour",
            Per::Month => "Month",
            Per::Query => "Query",
        };
        let format = match self.format {
            FileFormat::Parquet => "Parquet",
            FileFormat::Csv => "Csv",
            FileFormat::Arrow => "Arrow",
            FileFormat::BigtableParquet => "BigtableParquet",
            FileFormat::BigtableAvro => "BigtableAvro",
            FileFormat::CbtCsv => "CbtCsv",
        };
        let mode = match self.mode {
            ExportMode::Replace => "Replace",
            ExportMode::Append => "Append",
            ExportMode::Upsert => "Upsert",
        };
        format!("{per} {format} {mode} {:?}", self.keys)
    }

    /// Whether published rows of earlier runs stay. A period that is replaced or upserted is a function of its
    /// records: the query sees all of them, so rows it no longer returns are removed.
    pub fn accumulates(&self) -> bool {
        match self.mode {
            ExportMode::Replace => false,
            ExportMode::Append => true,
            ExportMode::Upsert => self.per == Per::Query,
        }
    }

    /// The types of its columns that differ from those of the query: tables with a log have no unsigned integers, and
    /// Iceberg's no integers under 32 bits.
    pub fn column_types(&self) -> ColumnTypes {
        let wide = self.log == Some(TableLog::Iceberg);
        ColumnTypes { signed: self.log.is_some(), wide, floats: self.float_decimals }
    }

    /// Where the log of its table is; `None` without one.
    pub fn log_place(&self) -> Option<LogPlace<'_>> {
        let template = self.name_template.as_str();
        let folder = template.split_once('/').map_or(template, |(folder, _)| folder);
        Some(LogPlace { log: self.log?, folder, day: self.day_column.as_deref() })
    }
}

/// What a part does to the one of the same name that was published before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExportMode {
    /// The part holds the rows of this run alone.
    #[default]
    Replace,
    /// The part keeps its rows, and those of this run follow.
    Append,
    /// Rows with equal keys are replaced, others are kept.
    Upsert,
}

/// Default size of a published file in bytes, approximately.
pub const FILE_SIZE: u64 = 1 << 30;

const PER: [(&str, Per); 4] = [("day", Per::Day), ("hour", Per::Hour), ("month", Per::Month), ("query", Per::Query)];

const FORMATS: [(&str, FileFormat); 6] = [
    ("parquet", FileFormat::Parquet),
    ("csv", FileFormat::Csv),
    ("arrow", FileFormat::Arrow),
    ("bigtable-parquet", FileFormat::BigtableParquet),
    ("bigtable-avro", FileFormat::BigtableAvro),
    ("cbt-csv", FileFormat::CbtCsv),
];

const MODES: [(&str, ExportMode); 3] =
    [("replace", ExportMode::Replace), ("append", ExportMode::Append), ("upsert", ExportMode::Upsert)];

/// How decimals are published: as they are, or as doubles.
const DECIMALS: [(&str, bool); 2] = [("exact", false), ("float", true)];

/// Reads one export; `folder` is the directory of the job file. `None` if it is invalid.
pub(crate) fn read(reader: &mut Reader<'_>, named: &Named<'_>, folder: &Path) -> Option<Export> {
    let before = reader.count();
    if !Id::Export.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Export, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &EXPORT, named.value, named.at.clone())?;
    fields.require(reader, "per");

    let per = fields.choice(reader, "per", &PER);
    let format = fields.choice(reader, "format", &FORMATS);
    if !format.holds_rows() && per != Per::Query {
        reader.refuse(fields.value_at("format"), Mistake::CellsPerQuery);
    }
    let mode = fields.choice(reader, "mode", &MODES);
    let keys = keys(reader, &fields, mode);
    let file_size = file_size(reader, &fields, format);

    let template = fields.required_text(reader, "name").and_then(|text| name_template(reader, &text, named.name, per));
    let log = table_log(reader, &fields);
    if let Some(log) = log {
        let one_folder = per == Per::Query || template.as_ref().is_some_and(|template| template.as_str().contains('/'));
        if !one_folder || format != FileFormat::Parquet {
            reader.refuse(fields.key_at(log.key()), Mistake::LogFolder { log, name: named.name.to_owned() });
        }
        if mode == ExportMode::Append {
            reader.refuse(fields.key_at(log.key()), Mistake::LogAppend { log });
        }
    }

    let snapshot_retention = snapshot_retention(reader, &fields, log);
    let has_day = template.as_ref().is_some_and(|template| template.has(Placeholder::Day));
    let wanted = fields.flag("day_column");
    let day_column = match wanted.unwrap_or(log == Some(TableLog::Iceberg) && has_day) {
        true => template.as_ref().and_then(|template| day_column(reader, &fields, template)),
        false if log == Some(TableLog::Iceberg) && has_day => {
            reader.refuse(fields.key_at("day_column"), Mistake::IcebergDayColumn);
            None
        }
        false => None,
    };
    let float_decimals = fields.choice(reader, "decimals", &DECIMALS);
    if float_decimals && !format.holds_rows() {
        reader.refuse(fields.key_at("decimals"), Mistake::CellsAreBytes);
    }

    let (sql, sql_path, sql_at) = query(reader, &fields, folder)?;
    let export = Export {
        name: named.name.to_owned(),
        per,
        name_template: template?,
        format,
        mode,
        keys,
        file_size,
        log,
        day_column,
        float_decimals,
        snapshot_retention,
        sql,
        sql_path,
        sql_at,
    };
    (reader.count() == before).then_some(export)
}

/// Bytes after which another file begins; only for formats that hold rows.
fn file_size(reader: &mut Reader<'_>, fields: &Fields<'_>, format: FileFormat) -> u64 {
    let Some(text) = fields.text(reader, "file_size") else { return FILE_SIZE };
    if !format.holds_rows() {
        reader.refuse(fields.key_at("file_size"), Mistake::CellsInOneFile);
    }
    parse_size(text.value).unwrap_or_else(|problem| {
        reader.refuse(text.at, Mistake::NotASize { key: "file_size", value: text.value.to_owned(), problem });
        FILE_SIZE
    })
}

/// The name of the column of the day: that of the Hive directory of the day, so that readers that take columns from
/// directories see one column, otherwise `day`.
fn day_column(reader: &mut Reader<'_>, fields: &Fields<'_>, template: &TimeTemplate) -> Option<String> {
    if !template.has(Placeholder::Day) {
        reader.refuse(fields.key_at("day_column"), Mistake::DayColumnWithoutDay);
        return None;
    }

    let mut name = "day";
    for (column, value) in template.as_str().split('/').skip(1).filter_map(|folder| folder.split_once('=')) {
        if matches!(value, "{day}" | "{day:%Y-%m-%d}" | "{day:%F}") {
            name = column;
        } else if column == name {
            reader.refuse(fields.key_at("day_column"), Mistake::DayColumnTwice { column: column.to_owned() });
            return None;
        }
    }
    Some(name.to_owned())
}

/// The log that is kept beside the files: at most one.
fn table_log(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<TableLog> {
    let mut wanted = TableLog::ALL.into_iter().filter(|log| fields.flag(log.key()).unwrap_or_default());
    let first = wanted.next();
    if let Some(second) = wanted.next() {
        reader.refuse(fields.key_at(second.key()), Mistake::TwoLogs);
    }
    first
}

/// Keys for how long replaced files stay: the second is from when Delta's was the only log.
const RETENTIONS: [&str; 2] = ["snapshot_retention", "delta_retention"];

/// How long replaced files stay for readers of older versions of the log, in microseconds.
fn snapshot_retention(reader: &mut Reader<'_>, fields: &Fields<'_>, log: Option<TableLog>) -> i64 {
    let mut given = RETENTIONS.into_iter().filter(|key| fields.has(key));
    let Some(key) = given.next() else { return SNAPSHOT_RETENTION };
    if given.next().is_some() {
        reader.refuse(fields.key_at("delta_retention"), Mistake::TwoRetentions);
    }
    let Some(text) = fields.text(reader, key) else { return SNAPSHOT_RETENTION };
    if log.is_none() {
        reader.refuse(fields.key_at(key), Mistake::RetentionWithoutLog { key });
    }
    match parse_age(text.value).filter(|age| *age >= LEAST_SNAPSHOT_RETENTION) {
        Some(age) => age,
        None => {
            reader.refuse(text.at.clone(), Mistake::SnapshotRetention { value: text.owned() });
            SNAPSHOT_RETENTION
        }
    }
}

/// The columns that identify a row: required for an upsert, refused otherwise.
fn keys(reader: &mut Reader<'_>, fields: &Fields<'_>, mode: ExportMode) -> Vec<String> {
    let keys: Vec<String> = fields.texts(reader, "keys").iter().map(Text::owned).collect();
    match mode {
        ExportMode::Upsert if keys.is_empty() => reader.refuse(fields.key_at("mode"), Mistake::UpsertWithoutKeys),
        ExportMode::Replace | ExportMode::Append if fields.has("keys") => {
            reader.refuse(fields.key_at("keys"), Mistake::KeysWithoutUpsert);
        }
        _ => {}
    }
    keys
}

/// Checks that each period gets a distinct name that a table may have.
fn name_template(reader: &mut Reader<'_>, text: &Text<'_>, export: &str, per: Per) -> Option<TimeTemplate> {
    let (allowed, needed): (&[Placeholder], _) = match per {
        Per::Day => (&[Placeholder::Day], Some(Placeholder::Day)),
        Per::Month => (&[Placeholder::Month], Some(Placeholder::Month)),
        Per::Hour => (&[Placeholder::Day, Placeholder::Hour], Some(Placeholder::Hour)),
        Per::Query => (&[], None),
    };
    let template = match TimeTemplate::parse(text.value, allowed) {
        Ok(template) => template,
        Err(error) => {
            reader.refuse(text.within(error.at()), error.into());
            return None;
        }
    };

    if let Some(needed) = needed.filter(|needed| !template.has(*needed)) {
        let mistake = Mistake::NameWithoutTime { name: export.to_owned(), example: example(needed) };
        reader.refuse(text.at.clone(), mistake);
        return None;
    }

    let mut seen = HashMap::new();
    for start in starts(per) {
        let name = template.render_at(start);
        if !is_folder(&name) {
            reader.refuse(text.at.clone(), Mistake::BadName { id: Id::Published, name });
            return None;
        }
        if name.split('/').next().is_some_and(|first| first.to_ascii_lowercase().ends_with(".json")) {
            reader.refuse(text.at.clone(), Mistake::NameOfList { name });
            return None;
        }

        let label = Period { start, per }.label();
        if let Some(first) = seen.insert(name.clone(), label.clone()) {
            reader.refuse(text.at.clone(), Mistake::NameOfTwo { first, second: label, name });
            return None;
        }
    }
    Some(template)
}

fn example(placeholder: Placeholder) -> &'static str {
    match placeholder {
        Placeholder::Day => "{day:%Y%m%d}",
        Placeholder::Month => "{month:%Y%m}",
        Placeholder::Hour => "{hour:%Y%m%d%H}",
    }
}

/// Whether a part can have the directory `name`: a table name, followed by at most two Hive partition directories
/// such as `dt=2018-01-31`.
fn is_folder(name: &str) -> bool {
    let mut folders = name.split('/');
    let is_named = folders.next().is_some_and(|first| Id::Published.allows(first));
    is_named && folders.clone().count() <= 2 && folders.all(is_hive_partition)
}

fn is_hive_partition(folder: &str) -> bool {
    folder.split_once('=').is_some_and(|(column, value)| is_word(column) && is_word(value))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// Period starts that show whether names are too long or repeat: two years, and one much later.
fn starts(per: Per) -> Vec<NaiveDateTime> {
    let first = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap_or_default();
    let later = NaiveDate::from_ymd_opt(2034, 9, 30);
    let days = first.iter_days().take(2 * 366).chain(later).map(|day| day.and_time(NaiveTime::MIN));
    match per {
        Per::Day => days.collect(),
        Per::Month => days.filter(|day| day.day() == 1).collect(),
        Per::Hour => days.flat_map(|day| (0..24).map(move |hour| day + TimeDelta::hours(hour))).collect(),
        Per::Query => days.take(1).collect(),
    }
}

/// A REST catalog of Iceberg, which other engines ask for tables by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// Its URL, without a slash at the end and without `/v1`.
    pub uri: String,
    /// The warehouse, where it has several.
    pub warehouse: Option<String>,
    /// The levels of the namespace of the tables.
    pub namespace: Vec<String>,
    /// The bearer token of requests; `None` for a catalog that asks for none.
    pub token: Option<SettingValue>,
}

impl Catalog {
    /// The table of an export, in words: lists of exports note it, so this text never changes.
    pub fn table(&self, export: &str) -> String {
        let warehouse = self.warehouse.as_ref().map(|name| format!(", warehouse {name}")).unwrap_or_default();
        format!("{}.{export} of {}{warehouse}", self.namespace.join("."), self.uri)
    }
}

/// Reads `[catalog]` of a job with these exports.
pub(crate) fn catalog(reader: &mut Reader<'_>, job: &Fields<'_>, exports: &[Export]) -> Option<Catalog> {
    let fields = Fields::of_value(reader, &CATALOG, job.value("catalog")?, job.key_at("catalog"))?;
    // An export with a mistake may be one.
    if reader.count() == 0 && !exports.iter().any(|export| export.log == Some(TableLog::Iceberg)) {
        reader.refuse(job.key_at("catalog"), Mistake::CatalogWithoutTable);
    }

    let uri = fields.required_text(reader, "uri");
    if let Some(uri) = uri.as_ref().filter(|uri| !is_http(uri.value) || redacted(uri.value) != uri.value) {
        reader.refuse(uri.at.clone(), Mistake::Address { key: "uri", value: redacted(uri.value) });
    }

    let namespace = fields.required_text(reader, "namespace");
    if let Some(text) = namespace.as_ref().filter(|text| !text.value.split('.').all(is_level)) {
        reader.refuse(text.at.clone(), Mistake::Namespace { value: text.owned() });
    }

    let token = match fields.text(reader, "token") {
        Some(text) => {
            reader.refuse(text.at.clone(), Mistake::PlainSecret { key: "token" });
            None
        }
        None => elsewhere(reader, &fields, "token"),
    };
    Some(Catalog {
        uri: uri?.value.trim_end_matches('/').to_owned(),
        warehouse: fields.text(reader, "warehouse").map(|text| text.owned()),
        namespace: namespace?.value.split('.').map(str::to_owned).collect(),
        token,
    })
}

/// Whether `name` can be a level of a namespace: it stands in paths of requests.
fn is_level(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The text of the query, its file, and its byte range in the job file.
pub(crate) fn query(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    folder: &Path,
) -> Option<(String, Option<PathBuf>, Range<usize>)> {
    fields.require(reader, "query");
    let query = Fields::of_value(reader, &QUERY, fields.value("query")?, fields.key_at("query"))?;
    if query.has("file") == query.has("sql") {
        reader.refuse(query.at(), Mistake::FileAndSql);
        return None;
    }
    if query.has("sql") {
        let sql = query.required_text(reader, "sql")?;
        return Some((sql.owned(), None, sql.at));
    }

    let file = query.required_text(reader, "file")?;
    let path = folder.join(reader.path("file", &file, "a file of SQL")?);
    let mistake = match std::fs::read_to_string(&path) {
        Ok(sql) if !sql.trim().is_empty() => return Some((sql, Some(path), file.at)),
        Ok(_) => Mistake::EmptySqlFile { path: file.value.into() },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Mistake::NoSqlFile { path: file.value.into() },
        Err(error) => Mistake::SqlFile { path: file.value.into(), error },
    };
    reader.refuse(file.at, mistake);
    None
}
