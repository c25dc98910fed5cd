use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use proptest::prelude::*;
use tidetable_layout::FieldType;

use crate::csv::dialect::Dialect;
use crate::csv::later_header::CsvHeader;
use crate::csv::notes::{Counted, TextNotes};
use crate::csv::rows::{Block, CsvPlan, parse};
use crate::reader_version::ReaderVersion;
use crate::reject::Rejected;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};

use super::rows::Parsed;

fn plan(spec: &SourceSpec, width: usize) -> CsvPlan {
    let columns = crate::plan::column_plans(spec, ReaderVersion::CURRENT).unwrap();
    let steps = (0..width).map(|at| (columns.len() - 1).checked_sub(at)).collect();
    CsvPlan {
        dialect: Dialect::new(&spec.csv, ReaderVersion::CURRENT),
        columns,
        header: CsvHeader { steps, ..CsvHeader::default() },
        extra: 0,
    }
}

fn text_plan(width: usize) -> CsvPlan {
    let names = ["a", "b", "c", "d"];
    let columns = names.iter().take(width).map(|name| ColumnSpec::new(*name, FieldType::Text)).collect();
    let csv = CsvOptions { null: Vec::new(), ..CsvOptions::default() };
    let spec = SourceSpec { columns, csv, ..SourceSpec::default() };
    let columns = crate::plan::column_plans(&spec, ReaderVersion::CURRENT).unwrap();
    CsvPlan {
        dialect: Dialect::new(&spec.csv, ReaderVersion::CURRENT),
        columns,
        header: CsvHeader { steps: (0..width).map(Some).collect(), ..CsvHeader::default() },
        extra: 0,
    }
}

fn block(bytes: &[u8]) -> Block<'_> {
    let lines = memchr::memchr_iter(b'\n', bytes).count();
    Block { bytes, first_line: 1, lines, plain: memchr::memchr(b'"', bytes).is_none(), later_header: None }
}

fn parts(parsed: Parsed) -> (Vec<ArrayRef>, Vec<u32>, Vec<Rejected>, u64) {
    assert_eq!(parsed.starts.len() + parsed.rejected.len(), parsed.read as usize);
    (parsed.columns, parsed.starts, parsed.rejected, parsed.read)
}

fn both_paths(plan: &CsvPlan, bytes: &[u8]) {
    // CRs that are data, or several of a line end, are left to the general path.
    let Some([fast, general]) = super::both_paths(plan, bytes).unwrap() else { return };
    assert_eq!(fast.starts.len() + fast.rejected.len(), fast.read as usize);
    assert_eq!(format!("{fast:?}"), format!("{general:?}"));
    assert_eq!(fast, general);
}

fn all_kinds(csv: CsvOptions) -> SourceSpec {
    let mut columns: Vec<ColumnSpec> = [
        FieldType::UInt64,
        FieldType::Int64,
        FieldType::Float64,
        FieldType::Decimal { precision: 12, scale: 3 },
        FieldType::Text,
        FieldType::Bool,
        FieldType::Timestamp,
        FieldType::Date,
        FieldType::Timestamp,
    ]
    .iter()
    .enumerate()
    .map(|(at, kind)| ColumnSpec::new(format!("c{at}"), *kind))
    .collect();
    columns[8].format = Some("%d/%m/%Y %H:%M".to_owned());
    columns[8].timezone = Some(chrono_tz::Europe::Paris);
    SourceSpec { columns, csv, ..SourceSpec::default() }
}

/// Fields that are right, nearly right and wrong for some type or other.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[0-9]{1,21}",
        "[-+]?[0-9]{0,19}[.,]?[0-9]{0,8}",
        "-?[0-9]{1,3}[.]?[0-9]{0,2}[eE][-+]?[0-9]{1,3}",
        " {0,2}[0-9]{1,4} {0,2}",
        "(true|FALSE|t|no|nan|inf|NA|-999)",
        "[a-zA-Zé\r\0 ]{0,40}",
        "20[0-2][0-9]-[01][0-9]-[0-3][0-9]",
        "20[0-2][0-9]-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9](Z|[.][0-9]{1,9}Z?|)",
        "[0-3]?[0-9]/(03|10)/20[0-2][0-9] 0[0-4]:[0-5][0-9]",
    ]
}

fn typed_field(at: usize) -> BoxedStrategy<String> {
    match at {
        0 => "[0-9]{1,20}".boxed(),
        1 => "-?[0-9]{1,19}".boxed(),
        2 | 3 => "-?[0-9]{1,9}([.][0-9]{1,4})?".boxed(),
        4 => "[a-z]{0,40}".boxed(),
        5 => "(true|f|1)".boxed(),
        6 => "20[0-2][0-9]-0[1-9]-[0-2][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9](Z|[.][0-9]{3}Z|)".boxed(),
        7 => "20[0-2][0-9]-0[1-9]-[0-2][0-9]".boxed(),
        8 => "[0-3][0-9]/(03|10)/20[0-2][0-9] 0[0-4]:[0-5][0-9]".boxed(),
        _ => field().boxed(),
    }
}

fn row() -> impl Strategy<Value = String> {
    // In reverse, as `plan` maps them, with one column more that is not declared.
    let fields: Vec<_> = (0..10).map(|at| if at == 9 { 9 } else { 8 - at }).map(typed_field).collect();
    let surprise = prop_oneof![6 => Just(None), 4 => (0usize..11, field()).prop_map(Some)];
    (fields, surprise, prop_oneof![Just("\n"), Just("\r\n")]).prop_map(|(mut fields, surprise, end)| {
        match surprise {
            Some((10, extra)) => fields.push(extra),
            Some((at, other)) => fields[at] = other,
            None => {}
        }
        format!("{}{end}", fields.join(";"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn both_paths_mean_the_same_for_rows(rows in proptest::collection::vec(row(), 1..12), comma: bool, cut: bool) {
        let null = vec![String::new(), "NA".to_owned(), "-999".to_owned()];
        let null = if cut { null } else { vec![String::new()] };
        let csv = CsvOptions { delimiter: b';', decimal_comma: comma, null, ..CsvOptions::default() };
        let plan = plan(&all_kinds(csv), 10);
        let text = rows.concat();
        both_paths(&plan, text.as_bytes());
        both_paths(&plan, text.trim_end().as_bytes());
    }

    #[test]
    fn both_paths_mean_the_same_for_anything(
        text in "([0-9a-z;,.\r\n\t +-]|é){0,200}", width in 1usize..4, comma: bool,
    ) {
        let delimiter = if comma { b',' } else { b';' };
        let csv = CsvOptions { delimiter, decimal_comma: comma, ..CsvOptions::default() };
        let mut spec = all_kinds(csv);
        for first in 0..3 {
            spec.columns.rotate_left(first);
            let narrow = SourceSpec { columns: spec.columns[..width].to_vec(), ..spec.clone() };
            both_paths(&plan(&narrow, width), text.as_bytes());
        }
    }

    #[test]
    fn arbitrary_bytes_are_all_accounted_for(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let plan = plan(&all_kinds(CsvOptions { comment: Some(b'#'), ..CsvOptions::default() }), 2);
        parts(parse(&plan, block(&bytes)).unwrap());
    }

    /// csv-core has the first rules, except that a lone carriage return ends a record there and that it closes an open
    /// quote at the end of the file.
    #[test]
    fn records_are_csv_cores(text in "[ab,\"\n]{0,60}") {
        let mut plan = text_plan(2);
        plan.dialect.reader = ReaderVersion::FIRST;
        let parsed = parse(&plan, block(text.as_bytes())).unwrap();
        let unclosed = parsed.rejected.iter().any(|row| row.reason.to_string().contains("never closed"));
        if unclosed {
            return Ok(());
        }
        let texts = |at: usize| -> Vec<String> {
            let column: &StringArray = parsed.columns[at].as_string();
            (0..column.len()).map(|row| column.value(row).to_owned()).collect()
        };
        let ours: Vec<_> = texts(0).into_iter().zip(texts(1)).collect();
        prop_assert_eq!(ours, csv_core_pairs(text.as_bytes()));
    }
}

/// The records of two fields.
fn csv_core_pairs(mut input: &[u8]) -> Vec<(String, String)> {
    let mut reader = csv_core::Reader::new();
    let (mut output, mut ends) = ([0u8; 256], [0usize; 128]);
    let (mut pairs, mut written, mut fields) = (Vec::new(), 0, 0);
    loop {
        let (result, read, out, count) = reader.read_record(input, &mut output[written..], &mut ends[fields..]);
        input = &input[read..];
        written += out;
        fields += count;
        match result {
            csv_core::ReadRecordResult::InputEmpty => {}
            csv_core::ReadRecordResult::Record => {
                if fields == 2 {
                    let text = |from: usize, to: usize| String::from_utf8_lossy(&output[from..to]).into_owned();
                    pairs.push((text(0, ends[0]), text(ends[0], ends[1])));
                }
                (written, fields) = (0, 0);
            }
            csv_core::ReadRecordResult::End => return pairs,
            _ => panic!("the buffers are large enough"),
        }
    }
}

/// Cuts wherever the dialect says so, for every size of buffer.
#[test]
fn cuts_do_not_change_records() {
    let texts: [&[u8]; 5] = [
        b"1,\"a\nb\"\r\n2,\"x\"\"\n\"\"y\"z\n\n#\"\n3,c",
        b"1,a\n2,\"open\n3,b\n4,\"\"\n5,c\n",
        b"1,\"a\n\n\n\n\nlonger than the limit of a quoted field\"\n2,\"b\"\n",
        b"\"\"\"\"\n\"\"\"\n\"\n\"a\"\"\",b\n",
        b"1,\"longer than the limit, on one line\"\n2,b\n3,\"longer than the limit, and open\n4,c\n5,\"d\"\n",
    ];
    for text in texts {
        let mut plan = text_plan(2);
        plan.dialect.comment = Some(b'#');
        plan.dialect.longest_quoted = 12;
        let whole = parse(&plan, block(text)).unwrap();
        let sizes = (1..text.len()).flat_map(|size| [1, 3, size].map(|wanted| (size, wanted)));
        for (size, wanted) in sizes {
            let (mut at, mut rows, mut rejected, mut line) = (0, 0, Vec::new(), 1);
            while at < text.len() {
                let mut size = size;
                let end = loop {
                    match text.get(at..at + size) {
                        Some(buffer) => match plan.dialect.cut(buffer, wanted, false) {
                            0 => size += 1,
                            end => break at + end,
                        },
                        None => break at + plan.dialect.cut(&text[at..], wanted, true),
                    }
                };
                let piece = parse(&plan, Block { first_line: line, ..block(&text[at..end]) }).unwrap();
                rows += piece.starts.len();
                rejected.extend(piece.rejected);
                line += text[at..end].iter().filter(|byte| **byte == b'\n').count() as u64;
                at = end;
            }
            assert_eq!((rows, &rejected), (whole.starts.len(), &whole.rejected), "{size} {wanted}");
        }
    }
}

fn texts(parsed: &Parsed, at: usize) -> Vec<String> {
    let column: &StringArray = parsed.columns[at].as_string();
    column.iter().map(|value| value.unwrap_or_default().to_owned()).collect()
}

/// Rows of two columns.
type Pairs = Vec<(String, String)>;

/// The rows of two columns by the rules of `reader`, and the rejected ones as (line, lines).
fn read(reader: ReaderVersion, text: &str) -> (Pairs, Vec<(u64, u64)>) {
    let mut plan = text_plan(2);
    plan.dialect.reader = reader;
    plan.dialect.escape = Some(b'\\');
    let parsed = parse(&plan, block(text.as_bytes())).unwrap();
    let rows = texts(&parsed, 0).into_iter().zip(texts(&parsed, 1)).collect();
    (rows, parsed.rejected.iter().map(|row| (row.line, row.lines)).collect())
}

#[test]
fn rules_of_records_are_those_of_the_reader_version() {
    let pairs = |rows: &[(&str, &str)]| -> Pairs {
        rows.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
    };
    let stray = "1,\"5 in\n2,b\n3,\"6 in\n4,d\n";
    assert_eq!(read(ReaderVersion::FIRST, stray), (pairs(&[("1", "5 in\n2,b\n3,6 in"), ("4", "d")]), vec![]));
    assert_eq!(read(ReaderVersion::CURRENT, stray), (pairs(&[("2", "b"), ("4", "d")]), vec![(1, 1), (3, 1)]));
    // In a later column of a record over several lines, the quote takes the lines before it along.
    let second = "\"1\n1\",\"5 in\n2,b\n3,\"6 in\n4,d\n";
    assert_eq!(read(ReaderVersion::CURRENT, second), (pairs(&[("2", "b"), ("4", "d")]), vec![(1, 2), (4, 1)]));
    let whole = "1,\"a\r\n\"\"b\"\r\r\n2,\"x\ny\",z\n3,\"c\"tail\n";
    let kept = [("1", "a\r\n\"b"), ("3", "ctail")];
    assert_eq!(read(ReaderVersion::CURRENT, whole), (pairs(&kept), vec![(3, 2)]));

    let returns = "1,a\r\r\n2,b\rc\r\n3,d\r";
    assert_eq!(read(ReaderVersion::FIRST, returns).0, pairs(&[("1", "a\r"), ("2", "b\rc"), ("3", "d")]));
    assert_eq!(read(ReaderVersion::CURRENT, returns).0, pairs(&[("1", "a"), ("2", "b\rc"), ("3", "d")]));
    let escaped = "1,\"a \\\"b\\\", \\\\ \\c\"\n2,\"\\\\\"\n";
    assert_eq!(read(ReaderVersion::CURRENT, escaped).0, pairs(&[("1", "a \"b\", \\ \\c"), ("2", "\\")]));
}

#[test]
fn unusual_records_are_noted() {
    let mut plan = text_plan(2);
    plan.header.text = b"a,b".to_vec();
    let parsed = parse(&plan, block(b"1,x\n\xEF\xBB\xBFa,b\r\n2,\"y\ny\ny\"\n3,z\rz\na,b\n4,\"a\nb\"\n")).unwrap();
    let TextNotes { several_lines, most_lines, repeated_headers, bare_returns, changed_headers, new_keys, .. } =
        parsed.notes;
    assert!(new_keys.is_empty());
    assert_eq!(changed_headers, Counted::default());
    assert_eq!((several_lines, most_lines), (Counted { count: 2, first_line: 3 }, 3));
    assert_eq!(repeated_headers, Counted { count: 2, first_line: 2 });
    assert_eq!(bare_returns, Counted { count: 1, first_line: 6 });
    assert_eq!((parsed.read, parsed.starts.len()), (4, 4));
    // Without a quote, too.
    let parsed = parse(&plan, block(b"1,x\na,b\n2,y\n")).unwrap();
    assert_eq!((parsed.notes.repeated_headers.count, texts(&parsed, 0)), (1, vec!["1".to_owned(), "2".to_owned()]));
}
