//! Schema inference: infers the dialect, columns and types of a file without a declaration.
//!
//! The result is validated with the reader that will load the file, so that the two cannot disagree.

mod candidate;
mod column;
mod counters;
mod error;
mod files;
mod formats;
mod head;
mod json;
mod kinds;
mod numbers;
mod odd;
mod pass;
mod refusal;
#[cfg(test)]
mod tests;
mod times;
mod typed;
mod units;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use arrow::array::{RecordBatch, StringArray};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::blocks::OpenedBlocks;
use crate::columnar::{Lists, columns};
use crate::csv::{TextNotes, name_again, name_by_place};
use crate::decompress::PlainContent;
use crate::error::SourceError;
use crate::format::Format;
use crate::plan::path_values;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec, Thousands};
use crate::storage::{InputFile, Storage};
use crate::value::blanks::trimmed_text;
use crate::value::notation::Notation;

pub use column::{NearlyTyped, NullWords, OddValues, SampleColumn, UnusualType};
pub use error::SampleError;
pub use files::{SampledFiles, UnlikeFile};
pub use numbers::codes::Codes;
pub use numbers::missing::{FarNumber, FarNumbers};
pub use numbers::unit::{SignForm, TextNumbers};
pub use times::{TICKS, named_so};
pub use typed::dump::{DumpSample, DumpedFamily};
pub use words::KeptMarker;

use candidate::Candidate;
use column::{settle, texts};
use files::{Declared, Kin};
use numbers::notation::{self, Marks};
use odd::{Inferred, SampledRow};
use pass::{Pass, take_unreadable};
use words::Words;

/// The part of a sample that tells a header from values: half a mebibyte.
const DIALECT_SHARE: u64 = 64;

/// The inferred schema of a file, or of files of a kind.
#[derive(Debug)]
pub struct Sample {
    /// The declaration, without the name and the event time of the source.
    pub spec: SourceSpec,
    /// Findings for each column of `spec.columns`, in the same order.
    pub columns: Vec<SampleColumn>,
    /// Columns that cannot be declared: without a name, or nested.
    pub left_out: Vec<String>,
    /// Declared columns that have no name in the file, and are called by their place.
    pub unnamed: Vec<String>,
    /// Declared columns whose name in the file is that of an earlier one: `v_2` is the second `v`.
    pub doubled: Vec<String>,
    /// Whether the names are those of two lines, one of which names groups of columns.
    pub is_joined: bool,
    /// The sampled rows that are accepted, in the declared types.
    pub batches: Vec<RecordBatch>,
    /// How many of the sampled rows will be rejected.
    pub rejected: u64,
    /// Lines of these rows beyond the first of each.
    pub more_lines: u64,
    /// The line of the first of these rows, from 1, and why.
    pub first_rejected: Option<(u64, String)>,
    /// Unusual records that are read all the same.
    pub notes: TextNotes,
    /// Ambiguous local times of the sample, because the clocks go back.
    pub repeated: u64,
    /// Whether the sample is all of the files.
    pub whole: bool,
    /// The files that it was made of.
    pub files: SampledFiles,
}

impl Storage {
    /// Infers a schema from the first 32 MiB of a file. Times without an offset are in `zone`.
    ///
    /// # Errors
    /// [`SampleError`]: the file cannot be read, or the sample does not determine its columns.
    pub fn sample(&self, input: &InputFile, zone: Option<Tz>) -> Result<Sample, SampleError> {
        self.sample_files(std::slice::from_ref(input), zone)
    }

    /// Infers one schema for files of a kind, at least one, from the beginnings of some of them.
    ///
    /// # Errors
    /// As [`Self::sample`]. A file that is not like the others is no error: see [`SampledFiles::unlike`].
    pub fn sample_files(&self, inputs: &[InputFile], zone: Option<Tz>) -> Result<Sample, SampleError> {
        self.sample_below(true, inputs, zone)
    }

    /// As [`Self::sample_files`], of CSV with a header or without one. A header that holds values is none.
    fn sample_below(&self, header: bool, inputs: &[InputFile], zone: Option<Tz>) -> Result<Sample, SampleError> {
        let Kin { declared, read, mut files } = self.kin(header, inputs, zone)?;
        let Declared { mut spec, mut left_out, encoding, path_columns, mut unnamed, .. } = declared;
        let (doubled, before, is_row, is_joined, unusual) =
            (declared.doubled, declared.before, declared.is_row, declared.is_joined, declared.unusual);
        let path = spec.files.first().cloned().unwrap_or_default();
        let is_text = spec.format.is_none_or(Format::is_text);
        let has_header = spec.format.is_none_or(|format| format == Format::Csv) && spec.csv.header;

        let mut written = self.pass_of_headers(&mut spec, &read)?;
        if take_comments_as_rows(&mut spec.csv, &written, before) {
            written = self.pass_of_headers(&mut spec, &read)?;
        }
        while let Some(column) = take_unreadable(&mut spec, &written) {
            left_out.push(format!("{column} (bytes that are not UTF-8)"));
            written = self.pass(&spec, &read)?;
        }
        if let Err(error) = refusal::enough(&spec, &written, encoding, read.len()) {
            return Err(match (error, read.as_slice()) {
                (SampleError::OneRow { path }, [only]) if only.format == Format::Json => {
                    json::one_record(&path, self.raw(only)?)?
                }
                (error, _) => error,
            });
        }
        // Without a header, columns are matched by their place: all are declared.
        let idle = match has_header {
            true => head::unnamed::take_idle(&mut unnamed, &mut spec, &written.batches),
            false => Vec::new(),
        };
        if !idle.is_empty() {
            let places = idle.iter().map(|name| name.trim_start_matches("column_"));
            left_out.extend(places.map(|place| format!("column {place} (it has no name)")));
            written = self.pass(&spec, &read)?;
        }

        let units = if has_header { units::take_out(&spec, &mut written.batches, zone) } else { None };
        let mut columns = match is_text {
            true => refine_text(&mut spec, &written, zone),
            false => typed::refine(&mut spec, &written, zone),
        };
        refusal::columns_fit(&spec, &written, &columns, read.len())?;
        for (column, found) in spec.columns.iter().zip(&mut columns) {
            let read = unusual.iter().find(|(name, _)| *name == column.name);
            found.unusual = read.map(|(_, read)| read.clone());
        }
        // A value of a path is a name, whatever its letters.
        for (column, found) in spec.columns.iter_mut().zip(&mut columns) {
            let is_time = matches!(column.kind, FieldType::Timestamp | FieldType::Date);
            if path_columns.contains(&column.name) && !is_time {
                *column = ColumnSpec::new(column.name.clone(), FieldType::Text);
                *found = SampleColumn::default();
            }
        }
        if has_header && (is_row || names_are_data(&spec, &written)) {
            return self.sample_below(false, inputs, zone);
        }
        let mut kinds = spec.columns.iter().zip(&columns);
        let are_texts = kinds.all(|(column, found)| column.kind == FieldType::Text && found.text_numbers.is_none());
        if is_text && !spec.csv.header && are_texts && !unnamed.is_empty() {
            return Err(SampleError::Log { path });
        }

        let line = written.origins.first().map_or(0, |origin| origin.line(0));
        let first_units = units.iter().flatten().zip(spec.columns.iter().zip(&mut columns));
        for (unit, (column, found)) in first_units.filter(|(unit, _)| !unit.is_empty()) {
            if column.kind != FieldType::Text && found.odd.is_none() {
                found.odd = Some(OddValues { count: 1, first: unit.clone(), line });
                break;
            }
        }
        drop(written);

        let mut typed = self.pass(&spec, &read)?;
        if counters::revert(&mut spec, &typed.batches) {
            typed = self.pass(&spec, &read)?;
        }
        let Pass { batches, rejected, more_lines, repeated, first, notes, whole, .. } = typed;
        let first_rejected = first.map(|row| (row.line, row.reason.to_string()));
        let whole = whole && read.len() == inputs.len();
        files.path_columns = path_columns;
        Ok(Sample {
            spec,
            columns,
            left_out,
            unnamed,
            doubled,
            is_joined,
            batches,
            rejected,
            more_lines,
            first_rejected,
            notes,
            repeated,
            whole,
            files,
        })
    }

    /// What separates and quotes the fields of a local file, and whether it has a header, as [`Storage::sample`] finds out;
    /// `delimiter` separates them, if it is known. A file without rows has a header, unless its line is numbers.
    ///
    /// # Errors
    /// If the file cannot be read, or has other lines than those of one table.
    pub fn csv_dialect(&self, path: &Path, delimiter: Option<u8>) -> Result<CsvOptions, SampleError> {
        let input = InputFile::local(path, Format::Csv)?;
        let (mut csv, names, before) = match head::read(&input.path, self.raw(&input)?, delimiter) {
            Ok(head) => (head.csv, head.names, head.before),
            Err(SampleError::OneColumn { .. }) => {
                let csv = CsvOptions { delimiter: delimiter.unwrap_or(b','), ..CsvOptions::default() };
                (csv, vec![first_line(path)?], Some(0))
            }
            Err(SampleError::Empty { .. }) => return Ok(CsvOptions::default()),
            Err(error) => return Err(error),
        };

        let is_number = |name: &String| name.trim().parse::<f64>().is_ok();
        if twice(&names).is_some_and(is_number) {
            csv.header = false;
            return Ok(csv);
        }

        let are_numbers = names.iter().all(is_number);
        let has_header = csv.header;
        let mut spec = declaration(&input, csv, names);
        let mut rows = Pass::default();
        self.pass_file(&spec, &input, DIALECT_SHARE, &mut rows)?;
        if take_comments_as_rows(&mut spec.csv, &rows, before) {
            rows = Pass::default();
            self.pass_file(&spec, &input, DIALECT_SHARE, &mut rows)?;
        }
        spec.csv.header = match rows.rows {
            _ if !has_header => false,
            0 => !are_numbers,
            _ => {
                refine_text(&mut spec, &rows, None);
                !names_are_data(&spec, &rows)
            }
        };
        Ok(spec.csv)
    }

    /// What the beginning of a file declares: text columns of CSV, which may have a header, typed ones of Parquet.
    fn declared(&self, header: bool, input: &InputFile, zone: Option<Tz>) -> Result<Declared, SampleError> {
        let path = &input.path;
        let spec = SourceSpec { files: vec![path.clone()], format: Some(input.format), ..SourceSpec::default() };
        let mut declared = match input.format {
            Format::Csv | Format::CbtCsv => self.declared_csv(header, input, spec)?,
            Format::Json => {
                let head = json::read(path, self.raw(input)?, spec)?;
                Declared::new(SourceSpec { columns: text_columns(head.names), ..head.spec }, head.left_out)
            }
            Format::Parquet | Format::BigtableParquet => {
                let file = self.parquet(input)?;
                let lists = Lists::likely(path, file.schema(), || file.first_rows())?;
                let typed = typed::columns(&file.columns(&lists)?, &lists, zone);
                Declared::typed(SourceSpec { each: lists.into_paths(), ..spec }, typed)
            }
            Format::Arrow | Format::Avro | Format::BigtableAvro => {
                let mut blocks = self.blocks(input)?;
                let mut opened = OpenedBlocks::open(&mut blocks, input.format)?;
                let schema = opened.schema().clone();
                let lists = Lists::likely(path, &schema, || opened.first_rows(&mut blocks))?;
                let events = lists.schema(&schema);
                let events = events.map_err(|source| SourceError::Arrow { path: path.clone(), source })?;
                let typed = typed::columns(&columns(&events, None), &lists, zone);
                Declared::typed(SourceSpec { each: lists.into_paths(), ..spec }, typed)
            }
        };

        for (key, _) in path_values(path) {
            if declared.spec.columns.iter().all(|column| column.name != key) {
                declared.spec.columns.push(ColumnSpec::new(key.clone(), FieldType::Text));
                declared.path_columns.push(key);
            }
        }
        Ok(declared)
    }

    /// As [`Self::declared`], of CSV. A header that has a number twice is no header.
    fn declared_csv(&self, header: bool, input: &InputFile, mut spec: SourceSpec) -> Result<Declared, SampleError> {
        let head = head::read(&input.path, self.raw(input)?, None)?;
        spec.csv = head.csv;
        if head.names.iter().any(|name| name.contains('\r')) {
            // Tells where lines end differently.
            self.open(&spec, input)?;
        }

        let mut names = head.names;
        // Names above rows with fewer fields are those of columns by place.
        if spec.csv.header {
            let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
            spec.csv.header = header && !twice(&names).is_some_and(is_number);
            if !spec.csv.header {
                names.iter_mut().for_each(String::clear);
            }
        }

        let unnamed = name_by_place(&mut names).into_iter().filter_map(|place| names.get(place).cloned()).collect();
        let doubled = name_again(&mut names);
        spec.columns = text_columns(names);
        let declared = Declared::new(spec, Vec::new());
        let (encoding, is_row, is_joined, before) = (head.encoding, head.is_row, head.is_joined, head.before);
        Ok(Declared { encoding, unnamed, doubled, before, is_row, is_joined, ..declared })
    }
}

fn text_columns(names: Vec<String>) -> Vec<ColumnSpec> {
    names.into_iter().map(|name| ColumnSpec::new(name, FieldType::Text)).collect()
}

/// The declaration of a file whose columns are text.
fn declaration(input: &InputFile, csv: CsvOptions, mut names: Vec<String>) -> SourceSpec {
    name_by_place(&mut names);
    let columns = text_columns(names);
    SourceSpec { files: vec![input.path.clone()], format: Some(Format::Csv), csv, columns, ..SourceSpec::default() }
}

/// The first line that is not blank, of a file whose lines nothing separates.
fn first_line(path: &Path) -> Result<String, SampleError> {
    let content = PlainContent::open(path)?;
    let mut lines = content.at_hand().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
    Ok(String::from_utf8_lossy(first).trim_matches('"').to_owned())
}

/// The first name that is there twice; blank ones do not count.
fn twice(names: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    names.iter().filter(|name| !trimmed_text(name).is_empty()).find(|name| !seen.insert(name.as_str()))
}

/// Reads lines that begin with the mark of comments as rows, if they have the fields of rows; `before` lines are skipped then.
/// Whether it is so.
fn take_comments_as_rows(csv: &mut CsvOptions, pass: &Pass, before: Option<u64>) -> bool {
    let Some(lines) = before.filter(|_| pass.notes.comment_rows.count > 0) else { return false };
    (csv.comment, csv.skip) = (None, lines);
    true
}

/// Infers the types of CSV columns that were read as text.
fn refine_text(spec: &mut SourceSpec, pass: &Pass, zone: Option<Tz>) -> Vec<SampleColumn> {
    let texts: Vec<Vec<&StringArray>> = (0..spec.columns.len()).map(|at| texts(&pass.batches, at)).collect();
    let is_csv = spec.format.is_none_or(|format| format == Format::Csv);
    // JSON has points in its numbers, whatever its texts have.
    let marks = if is_csv { odd::marks(&texts, spec.csv.delimiter == b',') } else { Marks::default() };
    if spec.csv.delimiter != b',' {
        spec.csv.decimal_comma = odd::decimal_comma(&texts, marks);
    }

    let mut inferred = Vec::with_capacity(texts.len());
    for (column, values) in spec.columns.iter().zip(&texts) {
        inferred.push(odd::infer_most(&column.name, values, &spec.csv, marks, zone));
    }
    keep_words_of_text(spec, &mut inferred, &texts);
    let mut found: Vec<&mut Candidate> = inferred.iter_mut().map(|inferred| &mut inferred.found).collect();
    times::take_order_of_others(&mut found);

    let markers: Vec<BTreeSet<String>> = inferred.iter().map(|inferred| inferred.found.markers.clone()).collect();
    let mut columns = Vec::with_capacity(texts.len());
    for ((column, inferred), values) in spec.columns.iter_mut().zip(inferred).zip(&texts) {
        columns.push(findings(column, inferred, values, pass, marks));
    }
    let kept = words::declare_markers(spec, &markers, &texts);
    for (found, kept) in columns.iter_mut().zip(kept) {
        found.kept_marker = kept;
    }
    columns
}

/// Declares a column of text as it was inferred, and says what its `values` show besides.
fn findings(
    column: &mut ColumnSpec,
    inferred: Inferred,
    values: &[&StringArray],
    pass: &Pass,
    marks: Marks,
) -> SampleColumn {
    let Inferred { found, odd, words, nearly, stray, notation, flagged, listed, count } = inferred;
    let mut there = candidate::values(values).filter(|value| !value.is_empty());
    let is_text = found.spec.kind == FieldType::Text;
    let text_numbers = if is_text { numbers::unit::text_numbers(there.clone()) } else { None };
    let is_number =
        !matches!(found.spec.kind, FieldType::Text | FieldType::Bool | FieldType::Timestamp | FieldType::Date);
    let notation::Found { notation, also } = notation;
    let by_point = |notation: &Notation| notation.thousands == Some(Thousands::Point);
    let separator = if by_point(&notation) || also.as_ref().is_some_and(by_point) { '.' } else { ',' };
    let separated = there.clone().find(|value| is_number && also.is_some() && value.contains(separator));
    let is_contrary = marks.commas_separate || marks.decimal_point;
    let splits_at_commas = is_number && is_contrary && notation.point == b',';
    let with_comma = there.clone().find(|value| splits_at_commas && also.is_none() && value.contains(','));
    let numbers = there.clone().filter(|value| !found.markers.contains(*value));
    let only_nines = if is_number { numbers::missing::only_nines(numbers.clone(), notation) } else { None };
    let far = if is_number { numbers::missing::far_numbers(numbers, notation) } else { None };
    let is_unread_time = matches!(found.spec.kind, FieldType::Text | FieldType::Int64) && named_so(&found.spec.name);
    let two_forms = if is_unread_time { times::two_forms(&found.spec.name, values) } else { None };
    let nearly = nearly.and_then(|nearly| {
        let odd = odd_values(&nearly.odd, values, pass)?;
        Some(NearlyTyped { is_time: nearly.is_time, values: count as u64, odd })
    });
    let midnights = midnights(&found, values, pass);

    SampleColumn {
        text_numbers,
        odd: odd_values(&odd, values, pass),
        stray: odd_values(&stray, values, pass),
        words: words.map(|words| null_words(&words, count)),
        nearly,
        ambiguous_separator: separated.map(str::to_owned),
        decimal_comma: with_comma.map(str::to_owned),
        flagged,
        listed,
        far,
        only_nines: only_nines.map(str::to_owned),
        two_forms,
        midnights,
        first: there.next().map(str::to_owned),
        ..settle(column, found)
    }
}

/// The days without a time of day among times whose format allows them.
fn midnights(found: &Candidate, values: &[&StringArray], pass: &Pass) -> Option<OddValues> {
    found.spec.format.as_deref().filter(|format| format.contains(times::OR_MIDNIGHT))?;
    let mut days = Vec::new();
    for (batch, array) in values.iter().enumerate() {
        let rows = array.iter().enumerate();
        let are_days = rows.filter(|(_, value)| value.is_some_and(|value| times::is_day_alone(trimmed_text(value))));
        days.extend(are_days.map(|(row, _)| SampledRow { batch, row }));
    }
    odd_values(&days, values, pass)
}

/// The values of these rows, of which there may be none.
fn odd_values(rows: &[SampledRow], values: &[&StringArray], pass: &Pass) -> Option<OddValues> {
    let SampledRow { batch, row } = rows.first()?;
    let first = trimmed_text(values.get(*batch)?.value(*row)).to_owned();
    Some(OddValues { count: rows.len() as u64, first, line: pass.origins.get(*batch)?.line(*row) })
}

/// Makes columns text again whose words for missing numbers are values of a column of text: null markers hold for all.
fn keep_words_of_text(spec: &SourceSpec, inferred: &mut [Inferred], texts: &[Vec<&StringArray>]) {
    let found = inferred.iter().filter_map(|inferred| inferred.words.as_ref());
    let words: BTreeSet<String> = found.flat_map(|words| words.counts.keys().cloned()).collect();
    if words.is_empty() {
        return;
    }

    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (inferred, column) in inferred.iter().zip(texts) {
        if inferred.found.spec.kind == FieldType::Text {
            taken.extend(candidate::values(column).filter(|value| words.contains(*value)).map(str::to_owned));
        }
    }
    for ((inferred, column), texts) in inferred.iter_mut().zip(&spec.columns).zip(texts) {
        if inferred.words.as_ref().is_some_and(|words| words.counts.keys().any(|word| taken.contains(word))) {
            odd::without_words(inferred, &column.name, texts);
        }
    }
}

fn null_words(words: &Words, values: usize) -> NullWords {
    let mut found: Vec<(&String, &u64)> = words.counts.iter().collect();
    found.sort_by_key(|(word, count)| (std::cmp::Reverse(**count), **word != words.first));
    let names = found.into_iter().map(|(word, _)| word.clone()).collect();
    NullWords { values: values as u64, count: words.places.len() as u64, words: names }
}

/// Whether the names of the header are values, of columns whose texts `pass` has and whose types are in `spec`.
fn names_are_data(spec: &SourceSpec, pass: &Pass) -> bool {
    let texts: Vec<Vec<&StringArray>> = (0..spec.columns.len()).map(|at| texts(&pass.batches, at)).collect();
    kinds::header_is_data(spec) || kinds::names_are_values(spec, &texts)
}
