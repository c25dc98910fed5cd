//! Bytes to rows: the fast way and the general way must mean the same, and so must a file in one chunk and in many.
//!
//! The first line of the input chooses the columns and the dialect, see [`spec`]; the rest is the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidetable_layout::FieldType;
use tidetable_source::fuzzing::{both_paths, read_all};
use tidetable_source::{ColumnSpec, CsvOptions, SourceSpec};

const KINDS: [FieldType; 8] = [
    FieldType::UInt64,
    FieldType::Int64,
    FieldType::Float64,
    FieldType::Decimal { precision: 12, scale: 3 },
    FieldType::Text,
    FieldType::Bool,
    FieldType::Timestamp,
    FieldType::Date,
];
const FORMATS: [&str; 6] = ["%Y-%m-%dT%H:%M:%SZ", "%d/%m/%Y %H:%M", "%Y%m%d%H%M%S%.f", "s", "ms", "ns"];

/// What the letters of `line` choose: `0` to `7` a column of that kind, `a` to `f` the format of the time before it,
/// `p` that it is in Paris, `-` a field that is no column; `,` `;` `|` the delimiter, `.` a decimal comma, `h` no header,
/// `#` comments, `q` no quotes, `'` those quotes, `n` more marks for null.
fn spec(line: &[u8]) -> (SourceSpec, Vec<Option<usize>>) {
    let mut spec = SourceSpec { name: "fuzz".to_owned(), time: "c0".to_owned(), ..SourceSpec::default() };
    let (mut csv, mut steps) = (CsvOptions::default(), Vec::new());
    for letter in line.iter().take(40) {
        match letter {
            b'0'..=b'7' => {
                steps.push(Some(spec.columns.len()));
                let kind = KINDS[usize::from(letter - b'0')];
                spec.columns.push(ColumnSpec::new(format!("c{}", spec.columns.len()), kind));
            }
            b'a'..=b'f' => {
                if let Some(last) = spec.columns.last_mut() {
                    last.format = Some(FORMATS[usize::from(letter - b'a')].to_owned());
                }
            }
            b'p' => {
                if let Some(last) = spec.columns.last_mut() {
                    last.timezone = Some(chrono_tz::Europe::Paris);
                }
            }
            b'-' => steps.push(None),
            b',' | b';' | b'|' => csv.delimiter = *letter,
            b'.' => csv.decimal_comma = true,
            b'h' => csv.header = false,
            b'#' => csv.comment = Some(b'#'),
            b'q' => csv.quote = None,
            b'\'' => csv.quote = Some(b'\''),
            b'n' => csv.null = ["", "NA", "-999", " x "].map(str::to_owned).to_vec(),
            _ => {}
        }
    }
    spec.csv = csv;
    (spec, steps)
}

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (spec, steps) = spec(&data[..end]);
    let bytes = &data[end + 1..];
    if spec.columns.is_empty() || spec.check().is_err() {
        return;
    }
    if let Some([fast, general]) = both_paths(&spec, steps, bytes).expect("the spec is right") {
        assert_eq!(fast.read, (fast.starts.len() + fast.rejected.len()) as u64);
        assert_eq!(format!("{fast:?}"), format!("{general:?}"));
        assert_eq!(fast, general);
    }
    let whole = read_all(&spec, bytes, bytes.len() + 1);
    for chunk in [1, 7, 64, 257] {
        match (&whole, read_all(&spec, bytes, chunk)) {
            (Ok(whole), Ok(cut)) => {
                assert_eq!(cut.read, (cut.batch.num_rows() + cut.rejected.len()) as u64);
                assert_eq!(*whole, cut, "in chunks of {chunk}");
            }
            (Err(_), Err(_)) => {}
            (whole, cut) => panic!("whole {whole:?}, in chunks of {chunk} {cut:?}"),
        }
    }
});
