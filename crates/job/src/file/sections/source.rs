//! Reads `[sources.NAME]`.

use chrono_tz::Tz;
use serde_spanned::Spanned;
use tidetable_layout::{Field, FieldType, SourceSchema};
use tidetable_source::{
    Ambiguous, ColumnSpec, CsvOptions, DumpForm, Format, LocationError, MaxRejected, Preset, SchemaMode, SourceError,
    SourceSpec, Split, Thousands,
};
use tidetable_sql::Derive;
use tidetable_sql::Preparation;
use toml::de::DeValue;

use crate::calendar::template::{Placeholder, TimeTemplate};
use crate::file::fields::{Fields, Named, Reader, Text};
use crate::file::keys::{COLUMN_TYPE, CSV, SOURCE, ValueShape};
use crate::file::names::Id;
use crate::file::problem::{Mistake, unknown_column};
use crate::file::sections::dump::{self, DumpKeys};
use crate::file::sections::storage;
use crate::file::sections::storage::StorageSetting;
use crate::file::stored_names;
use crate::file::types;
use crate::file::types::TypeError;
use crate::file::words::nearest;

/// A source of a job: files of one kind, and how their rows are read.
#[derive(Debug, Clone)]
pub struct Source {
    /// Where the files are, their format, and the columns to parse.
    pub spec: SourceSpec,
    /// Derived columns in file order: name and SQL expression, as written.
    pub derive: Vec<(String, String)>,
    /// The derived columns, compiled for the columns of the files.
    pub preparation: Preparation,
    /// Settings of the object stores that its files are in.
    pub storage: Vec<StorageSetting>,
}

impl Source {
    /// Identifies how rows are read and which columns are derived: tables are rebuilt when it changes.
    pub(crate) fn fingerprint(&self) -> String {
        let SourceSpec { format, csv, columns, time, mode, .. } = &self.spec;
        let columns: Vec<String> = columns
            .iter()
            .map(|column| {
                let zone = column.timezone.map(|zone| zone.name());
                let kind = stored_names::field_type(column.kind);
                // Keys that are not set leave the fingerprint as it was before they existed.
                let decimal = column.decimal_comma.map_or("", |comma| if comma { " decimal ," } else { " decimal ." });
                let thousands = column.thousands.map_or("", Thousands::written);
                let ambiguous = match column.ambiguous {
                    Ambiguous::Earlier => String::new(),
                    Ambiguous::Later => " later".to_owned(),
                    Ambiguous::ByOrder => format!(" by-order {:?}", self.spec.series),
                };
                let null = column.null.as_ref().map_or_else(String::new, |null| format!(" null {null:?}"));
                format!("{} {kind} {:?} {zone:?}{decimal}{thousands}{ambiguous}{null}", column.name, column.format)
            })
            .collect();
        // Of the first two formats as it was written before there were more.
        let format = match format {
            None => "None".to_owned(),
            Some(Format::Csv) => "Some(true)".to_owned(),
            Some(Format::Parquet) => "Some(false)".to_owned(),
            Some(other) => other.key().to_owned(),
        };
        let csv = (csv.delimiter, csv.quote, csv.header, &csv.null, csv.comment, csv.decimal_comma);
        // Named only where they are set, so that a job without them keeps its fingerprint.
        let escape = self.spec.csv.escape.map_or_else(String::new, |escape| format!(" escape {escape}"));
        let skip = if self.spec.csv.skip > 0 { format!(" skip {}", self.spec.csv.skip) } else { String::new() };
        // `freeze` and `evolve` read the same rows from files that both accept; `reject` may read fewer.
        let rejects = if *mode == SchemaMode::Reject { " reject" } else { "" };
        let nan = if self.spec.rejects_nan { " nan" } else { "" };
        let each = if self.spec.each.is_empty() { String::new() } else { format!(" each {:?}", self.spec.each) };
        let preset = self.spec.preset.map_or_else(String::new, |preset| format!(" preset {}", preset.key()));
        let dump = match &self.spec.dump {
            DumpForm::Cells { families, .. } if families.is_empty() => String::new(),
            DumpForm::Cells { families, .. } => format!(" families {families:?}"),
            DumpForm::Records(layout) => format!(" layout {}", layout.fingerprint()),
        };
        format!("{format} {csv:?} {columns:?} {time} {:?}{rejects}{escape}{skip}{nan}{each}{preset}{dump}", self.derive)
    }
}

impl Source {
    /// Settings that change nothing, because no file of the source has their format: a sentence each.
    pub fn idle_settings(&self) -> Vec<String> {
        let SourceSpec { name, files, format, each, preset, rejects_nan, columns, series, .. } = &self.spec;
        let formats: Vec<Option<Format>> = files.iter().map(|file| format.or_else(|| Format::of_name(file))).collect();
        let may_be_csv = formats.iter().any(|format| format.is_none_or(|format| format == Format::Csv));
        let other = formats.iter().flatten().find(|format| **format != Format::Csv);

        let mut idle = Vec::new();
        if let Some(other) = other.filter(|_| !may_be_csv) {
            self.idle_csv_settings(other.name(), &mut idle);
        }
        let are_csv = formats.iter().all(|format| *format == Some(Format::Csv));
        if are_csv && *rejects_nan {
            idle.push(format!("`nan` of source {name} changes nothing: its files are CSV"));
        }
        if are_csv && !each.is_empty() {
            idle.push(format!("`each` of source {name} changes nothing: its files are CSV"));
        }
        // The format of a folder is that of its files.
        if preset.is_some() && formats.iter().all(|format| format.is_some_and(|format| format != Format::Json)) {
            idle.push(format!("`preset` of source {name} changes nothing: none of its files is JSON"));
        }
        for column in columns.iter().filter(|column| column.ambiguous != Ambiguous::Earlier) {
            let why = match column.timezone {
                None => "it has no `timezone`",
                Some(zone) if !has_changes(zone) => "the clocks of its `timezone` stay",
                Some(_) => continue,
            };
            idle.push(format!("`ambiguous` of column {} of source {name} changes nothing: {why}", column.name));
        }
        if !series.is_empty() && columns.iter().all(|column| column.ambiguous != Ambiguous::ByOrder) {
            idle.push(format!("`series` of source {name} changes nothing: no column is `ambiguous = \"by-order\"`"));
        }
        idle
    }

    /// Adds the settings of CSV, for a source whose files are all of another format, which is called `format`.
    fn idle_csv_settings(&self, format: &str, idle: &mut Vec<String>) {
        let SourceSpec { name, csv, columns, .. } = &self.spec;
        let default = CsvOptions::default();
        let settings = [
            ("csv.delimiter", csv.delimiter != default.delimiter),
            ("csv.quote", csv.quote != default.quote),
            ("csv.escape", csv.escape != default.escape),
            ("csv.skip", csv.skip != default.skip),
            ("csv.header", csv.header != default.header),
            ("csv.comment", csv.comment != default.comment),
        ];
        for (key, _) in settings.iter().filter(|(_, is_set)| *is_set) {
            idle.push(format!("`{key}` of source {name} changes nothing: its files are {format}"));
        }

        // Null markers hold for numbers of every format.
        for column in columns.iter().filter(|column| column.kind == FieldType::Text && column.null.is_some()) {
            idle.push(format!(
                "`null` of column {} of source {name} changes nothing: in {format} it holds for columns that are not text",
                column.name
            ));
        }
        if csv.null != default.null && columns.iter().all(|column| column.kind == FieldType::Text) {
            idle.push(format!(
                "`csv.null` of source {name} changes nothing: in {format} it holds for columns that are not text"
            ));
        }
    }
}

/// Whether the clocks of a zone are changed in some year of ours.
fn has_changes(zone: Tz) -> bool {
    zone != Tz::UTC && !zone.name().starts_with("Etc/")
}

#[derive(Debug)]
pub(crate) struct ReadSource {
    pub(crate) spec: SourceSpec,
    pub(crate) derived: Derived,
    /// The schema that layouts are compiled against, if its columns and time are valid.
    pub(crate) schema: Option<SourceSchema>,
    pub(crate) storage: Vec<StorageSetting>,
    pub(crate) dump: DumpKeys,
}

/// The columns that a source computes with SQL from those of its files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Derived {
    /// Name and SQL, in file order.
    pub(crate) written: Vec<(String, String)>,
    pub(crate) compiled: Option<Derive>,
}

/// Reads `[sources.NAME]`, and notes its mistakes; `None` if it is no table.
pub(crate) fn read(reader: &mut Reader<'_>, named: &Named<'_>) -> Option<ReadSource> {
    if !Id::Source.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Source, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &SOURCE, named.value, named.at.clone())?;
    let files = files(reader, &fields);
    let format = fields.choice(reader, "format", &Format::ALL.map(|format| (format.key(), Some(format))));
    let each = fields.texts(reader, "each").iter().map(Text::owned).collect();
    let preset = fields.choice(reader, "preset", &Preset::ALL.map(|preset| (preset.key(), Some(preset))));
    let csv = csv_options(reader, &fields);
    let max_rejected = max_rejected(reader, &fields);
    let rejected_floor = rejected_floor(reader, &fields);
    let mode = mode(reader, &fields, &csv);
    let rejects_nan = fields.choice(reader, "nan", &[("null", false), ("reject", true)]);
    let columns = columns(reader, &fields, csv.decimal_comma);
    let series = series(reader, &fields, named.name, columns.as_deref().unwrap_or_default());
    let dump = dump::read(reader, &fields, named.name, format, columns.as_deref().unwrap_or_default());

    let time = fields.required_text(reader, "time");
    let derived = columns.as_deref().map(|columns| derived(reader, &fields, columns)).unwrap_or_default();
    let declared = columns.as_deref().and_then(|columns| match &derived.compiled {
        Some(derive) => Some(derive.fields().to_vec()),
        None => derived.written.is_empty().then(|| fields_of(columns)),
    });
    let schema = declared.zip(time.as_ref()).and_then(|(declared, time)| schema(reader, named.name, declared, time));

    let spec = SourceSpec {
        name: named.name.to_owned(),
        files,
        format,
        each,
        preset,
        csv,
        columns: columns.unwrap_or_default(),
        time: time.map(|time| time.owned()).unwrap_or_default(),
        max_rejected,
        rejected_floor,
        mode,
        rejects_nan,
        series,
        dump: DumpForm::default(),
    };

    let storage = storage::read(reader, &fields, &spec);
    Some(ReadSource { spec, derived, schema, storage, dump })
}

/// Parses the name of a time zone of the IANA database, and notes a mistake with the nearest one.
pub(crate) fn timezone(reader: &mut Reader<'_>, text: &Text<'_>) -> Option<Tz> {
    let zone = text.value.parse().ok();
    if zone.is_none() {
        let near = nearest(text.value, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()));
        reader.refuse(text.at.clone(), Mistake::TimeZone { value: text.owned(), near });
    }
    zone
}

fn files(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<String> {
    fields.require(reader, "files");
    let files = fields.texts(reader, "files");
    if files.is_empty() && fields.value("files").is_some() {
        reader.refuse(fields.value_at("files"), Mistake::Empty { key: "files" });
    }

    for file in &files {
        if file.value.is_empty() {
            reader.refuse(file.at.clone(), Mistake::Empty { key: "files" });
        }

        let error = match Split::of(file.value) {
            Ok(Split::Bucket { key: "", .. }) => Some(LocationError::without_key(file.value)),
            split => split.err(),
        };
        if let Some(error) = error {
            reader.refuse(file.at.clone(), Mistake::Place { key: "files", error });
        }

        if let Err(error) = TimeTemplate::parse(file.value, &[Placeholder::Day]) {
            reader.refuse(file.within(error.at()), error.into());
        }
        // As a glob, `{day}` would be a choice of one word.
        for (start, bare) in file.value.match_indices("{day}") {
            reader.refuse(file.within(start..start + bare.len()), Mistake::DayWithoutFormat);
        }
    }
    files.iter().map(Text::owned).collect()
}

fn csv_options(reader: &mut Reader<'_>, fields: &Fields<'_>) -> CsvOptions {
    let mut options = CsvOptions::default();
    let csv = fields.value("csv").map(|value| (value, fields.key_at("csv")));
    let Some(csv) = csv.and_then(|(value, at)| Fields::of_value(reader, &CSV, value, at)) else { return options };

    if let Some(delimiter) = character(reader, &csv, "delimiter") {
        options.delimiter = delimiter;
    }
    match csv.text(reader, "quote") {
        Some(none) if none.value.is_empty() => options.quote = None,
        _ => options.quote = character(reader, &csv, "quote").or(options.quote),
    }
    options.escape = character(reader, &csv, "escape").or(options.escape);
    options.skip = skipped(reader, &csv);
    options.comment = character(reader, &csv, "comment").or(options.comment);

    options.header = csv.flag("header").unwrap_or(options.header);
    if csv.has("null") {
        options.null = csv.texts(reader, "null").iter().map(Text::owned).collect();
    }
    options.decimal_comma = csv.choice(reader, "decimal", &[(".", false), (",", true)]);
    no_clash(reader, &csv, &options);
    options
}

fn skipped(reader: &mut Reader<'_>, csv: &Fields<'_>) -> u64 {
    let Some(value) = csv.whole("skip") else { return 0 };
    u64::try_from(value).unwrap_or_else(|_| {
        reader.refuse(csv.value_at("skip"), Mistake::SkippedLines { value });
        0
    })
}

fn character(reader: &mut Reader<'_>, csv: &Fields<'_>, key: &'static str) -> Option<u8> {
    let text = csv.text(reader, key)?;
    match *text.value.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Some(byte),
        _ => {
            reader.refuse(text.at.clone(), Mistake::OneCharacter { key, value: text.value.escape_debug().to_string() });
            None
        }
    }
}

/// Refuses a character with two meanings.
fn no_clash(reader: &mut Reader<'_>, csv: &Fields<'_>, options: &CsvOptions) {
    let uses = [
        ("delimiter", Some(options.delimiter)),
        ("quote", options.quote),
        ("escape", options.escape),
        ("comment", options.comment),
        ("decimal", options.decimal_comma.then_some(b',')),
    ];
    for (index, (second, byte)) in uses.iter().enumerate() {
        let earlier = uses.iter().take(index).find(|(_, other)| byte.is_some() && other == byte);
        if let (Some((first, _)), Some(byte)) = (earlier, byte) {
            let at = csv.value_at(if csv.has(second) { second } else { first });
            reader.refuse(at, Mistake::SameCharacter { value: char::from(*byte), first, second });
        }
    }
}

fn max_rejected(reader: &mut Reader<'_>, fields: &Fields<'_>) -> MaxRejected {
    let Some(value) = fields.value("max_rejected") else { return MaxRejected::default() };
    let written = match value.get_ref() {
        DeValue::Integer(number) => number.to_string(),
        DeValue::String(text) => text.to_string(),
        _ => return MaxRejected::default(),
    };
    MaxRejected::parse(&written).unwrap_or_else(|_| {
        reader.refuse(value.span(), Mistake::MaxRejected { value: written });
        MaxRejected::default()
    })
}

/// Rows that may be rejected whatever the share.
fn rejected_floor(reader: &mut Reader<'_>, fields: &Fields<'_>) -> u64 {
    let Some(number) = fields.whole("rejected_floor") else { return 0 };
    u64::try_from(number).unwrap_or_else(|_| {
        reader.refuse(fields.value_at("rejected_floor"), Mistake::RejectedFloor { value: number });
        0
    })
}

/// How files with other columns are treated.
fn mode(reader: &mut Reader<'_>, fields: &Fields<'_>, csv: &CsvOptions) -> SchemaMode {
    let modes = [("freeze", SchemaMode::Freeze), ("evolve", SchemaMode::Evolve), ("reject", SchemaMode::Reject)];
    let mode = fields.choice(reader, "schema", &modes);
    if let Some((name, _)) = modes.iter().find(|(_, known)| *known == mode && mode != SchemaMode::Freeze)
        && !csv.header
    {
        reader.refuse(fields.value_at("schema"), Mistake::ModeWithoutHeader { mode: name });
    }
    mode
}

/// The columns in file order; `None` if one is invalid.
/// `decimal_comma` holds for columns that do not say.
fn columns(reader: &mut Reader<'_>, fields: &Fields<'_>, decimal_comma: bool) -> Option<Vec<ColumnSpec>> {
    fields.require(reader, "columns");
    let named = fields.named("columns");
    if named.is_empty() {
        if fields.value("columns").is_some() {
            reader.refuse(fields.key_at("columns"), Mistake::Empty { key: "columns" });
        }
        return None;
    }
    let read: Vec<_> = named.iter().map(|named| column(reader, named, decimal_comma)).collect();
    read.into_iter().collect()
}

/// Reads `"uint64"` or `{ type, format, timezone }`.
fn column(reader: &mut Reader<'_>, named: &Named<'_>, decimal_comma_of_file: bool) -> Option<ColumnSpec> {
    let name = named.name.to_owned();
    if let Some(written) = named.value.get_ref().as_str() {
        let kind = field_type(reader, written, named.value)?;
        return Some(ColumnSpec::new(name, kind));
    }
    if !named.value.get_ref().is_table() {
        let found = named.value.get_ref().type_str();
        let mistake = Mistake::WrongType { key: name, shape: ValueShape::TextOrTable, found };
        reader.refuse(named.value.span(), mistake);
        return None;
    }

    let fields = Fields::of_value(reader, &COLUMN_TYPE, named.value, named.at.clone())?;
    let format = fields.text(reader, "format");
    let zone = fields.text(reader, "timezone");
    let kind = match fields.value("type") {
        Some(value) => field_type(reader, value.get_ref().as_str()?, value)?,
        None if fields.has("format") => FieldType::Timestamp,
        None => {
            fields.require(reader, "type");
            return None;
        }
    };

    if format.is_some() && !matches!(kind, FieldType::Timestamp | FieldType::Date) {
        wrong_key(reader, &fields, "format", kind);
    } else if let Some(format) = &format {
        time_format(reader, format, kind);
    }
    if zone.is_some() && kind != FieldType::Timestamp {
        wrong_key(reader, &fields, "timezone", kind);
    }
    let timezone = zone.and_then(|text| timezone(reader, &text));

    let ambiguous = fields.choice(reader, "ambiguous", &Ambiguous::ALL.map(|known| (known.key(), known)));
    if fields.has("ambiguous") && kind != FieldType::Timestamp {
        wrong_key(reader, &fields, "ambiguous", kind);
    }

    let decimal_comma = fields.has("decimal").then(|| fields.choice(reader, "decimal", &[(".", false), (",", true)]));
    let thousands = fields.choice(reader, "thousands", &Thousands::ALL.map(|known| (known.written(), Some(known))));
    for key in ["decimal", "thousands"] {
        if fields.has(key) && !is_number(kind) {
            wrong_key(reader, &fields, key, kind);
        }
    }

    let is_comma = decimal_comma.unwrap_or(decimal_comma_of_file);
    if thousands.is_some_and(|separator| separator.written() == if is_comma { "," } else { "." }) {
        let value = if is_comma { ',' } else { '.' };
        let mistake = Mistake::SameCharacter { value, first: "decimal", second: "thousands" };
        reader.refuse(fields.value_at("thousands"), mistake);
    }
    let format = format.map(|format| format.owned());
    let null = fields.has("null").then(|| fields.texts(reader, "null").iter().map(Text::owned).collect());
    Some(ColumnSpec { name, kind, format, timezone, ambiguous, decimal_comma, thousands, null })
}

/// Reads `series`, whose names are those of columns.
fn series(reader: &mut Reader<'_>, fields: &Fields<'_>, source: &str, columns: &[ColumnSpec]) -> Vec<String> {
    let names = fields.texts(reader, "series");
    for name in &names {
        if !columns.is_empty() && columns.iter().all(|column| column.name != name.value) {
            let known = columns.iter().map(|column| column.name.clone()).collect();
            reader.refuse(name.at.clone(), unknown_column(name.value, source, known));
        }
    }
    names.iter().map(Text::owned).collect()
}

/// Refuses a key that columns of this type do not have.
fn wrong_key(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &'static str, kind: FieldType) {
    reader.refuse(fields.key_at(key), Mistake::KeyForType { key, kind: kind.to_string() });
}

fn is_number(kind: FieldType) -> bool {
    matches!(kind, FieldType::UInt64 | FieldType::Int64 | FieldType::Float64 | FieldType::Decimal { .. })
}

/// Checks a time format with the parser of files.
fn time_format(reader: &mut Reader<'_>, format: &Text<'_>, kind: FieldType) {
    let column = ColumnSpec { format: Some(format.owned()), ..ColumnSpec::new("", kind) };
    let probe = SourceSpec { columns: vec![column], ..SourceSpec::default() };
    if let Err(SourceError::TimeFormat { fault, .. }) = probe.check() {
        reader.refuse(format.at.clone(), Mistake::TimeFormat { value: format.owned(), fault });
    }
}

fn field_type(reader: &mut Reader<'_>, written: &str, value: &Spanned<DeValue<'_>>) -> Option<FieldType> {
    match types::parse(written) {
        Ok(kind) => Some(kind),
        Err(error) => {
            let value_text = written.to_owned();
            let mistake = match error {
                TypeError::Unknown { near } => Mistake::UnknownType { value: value_text, near },
                TypeError::Decimal => Mistake::Decimal { value: value_text },
            };
            reader.refuse(value.span(), mistake);
            None
        }
    }
}

fn fields_of(columns: &[ColumnSpec]) -> Vec<Field> {
    columns.iter().map(|column| Field { name: column.name.clone(), kind: column.kind }).collect()
}

/// Reads `derive = { ts = "SQL", .. }`.
fn derived(reader: &mut Reader<'_>, fields: &Fields<'_>, columns: &[ColumnSpec]) -> Derived {
    let mut derived = Derived::default();
    let mut places = Vec::new();
    for named in fields.named("derive") {
        let at = named.value.span();
        let Some(sql) = named.value.get_ref().as_str() else {
            let found = named.value.get_ref().type_str();
            reader.refuse(at, Mistake::WrongType { key: named.name.to_owned(), shape: ValueShape::Text, found });
            continue;
        };
        derived.written.push((named.name.to_owned(), sql.to_owned()));
        places.push(at);
    }

    if derived.written.is_empty() {
        return derived;
    }

    match Derive::new(&fields_of(columns), &derived.written) {
        Ok(compiled) => derived.compiled = Some(compiled),
        Err(errors) => {
            for (index, error) in errors {
                if let Some(at) = places.get(index) {
                    reader.refuse(at.clone(), Mistake::Expression { error });
                }
            }
        }
    }
    derived
}

fn schema(reader: &mut Reader<'_>, source: &str, fields: Vec<Field>, time: &Text<'_>) -> Option<SourceSchema> {
    let Some(index) = fields.iter().position(|field| field.name == time.value) else {
        let known: Vec<_> = fields.iter().map(|field| field.name.clone()).collect();
        reader.refuse(time.at.clone(), unknown_column(time.value, source, known));
        return None;
    };
    let kind = fields.get(index)?.kind;
    if kind != FieldType::Timestamp {
        reader.refuse(time.at.clone(), Mistake::TimeKind { name: time.owned(), kind: kind.to_string() });
        return None;
    }
    Some(SourceSchema { fields, time: index })
}
