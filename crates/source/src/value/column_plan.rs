//! The plan of a column: type, null markers, notation of numbers, time format.

use tidetable_layout::FieldType;

use crate::error::SourceError;
use crate::number::{Exact, NumberFault};
use crate::reader_version::ReaderVersion;
use crate::reject::{RejectReason, quoted};
use crate::spec::{ColumnSpec, SourceSpec};
use crate::time::{TimeFault, TimeRule};
use crate::value::blanks::{trimmed, trimmed_of_ascii, trimmed_text};
use crate::value::notation::Notation;

/// How one declared column is read, in files of all formats.
#[derive(Debug)]
pub(crate) struct ColumnPlan {
    pub name: String,
    pub kind: FieldType,
    /// How times are read, of Timestamp and Date columns.
    pub time: Option<TimeRule>,
    /// Null markers except the empty one, which `empty_is_null` stands for.
    pub(crate) nulls: Vec<Vec<u8>>,
    empty_is_null: bool,
    pub notation: Notation,
    /// The null markers that are numbers, of numeric columns: equal numbers are null, however they are written.
    pub null_numbers: Vec<Exact>,
    /// Whether NaN rejects its row; otherwise it is null.
    pub rejects_nan: bool,
    /// Whether a field in a short form is certainly a value: no null marker looks like one (such as -999).
    pub short: bool,
    /// The reading rules of the file, which decide what its fields mean.
    pub reader: ReaderVersion,
}

impl ColumnPlan {
    pub(crate) fn new(spec: &SourceSpec, column: &ColumnSpec, reader: ReaderVersion) -> Result<Self, SourceError> {
        let is_old = !reader.reads_more_values();
        let format = column.format.as_deref();
        let time = match column.kind {
            FieldType::Timestamp => Some(
                TimeRule::timestamp(format, column.timezone, is_old).map(|rule| rule.with_ambiguous(column.ambiguous)),
            ),
            FieldType::Date => Some(TimeRule::date(format, is_old)),
            _ => None,
        };
        let time = time.transpose().map_err(|fault| SourceError::TimeFormat {
            column: column.name.clone(),
            format: format.unwrap_or_default().to_owned(),
            fault,
        })?;

        let decimal_comma = column.decimal_comma.unwrap_or(spec.csv.decimal_comma);
        let point = if decimal_comma { b',' } else { b'.' };
        let notation = Notation { point, thousands: column.thousands, unicode_minus: !is_old };

        let is_text = column.kind == FieldType::Text;
        let null = column.null.as_ref().unwrap_or(&spec.csv.null);
        let mut markers: Vec<&str> =
            null.iter().map(|marker| if is_text { marker } else { trimmed_text(marker) }).collect();
        let empty_is_null = markers.contains(&"");
        markers.retain(|marker| !marker.is_empty());
        let is_number = matches!(
            column.kind,
            FieldType::UInt64 | FieldType::Int64 | FieldType::Float64 | FieldType::Decimal { .. }
        );
        let mut null_numbers = Vec::new();
        for marker in markers.iter().filter(|_| is_number && !is_old) {
            // A marker may be written with a point although the values have a comma.
            let number = notation.exact(marker.as_bytes()).or_else(|| Exact::parse(marker.as_bytes(), b'.'));
            null_numbers.extend(number);
        }

        Ok(Self {
            name: column.name.clone(),
            kind: column.kind,
            time,
            nulls: markers.iter().map(|marker| marker.as_bytes().to_vec()).collect(),
            empty_is_null,
            notation,
            null_numbers,
            rejects_nan: spec.rejects_nan || is_old,
            short: false,
            reader,
        })
    }

    /// The field without the blanks around it, by the rules of the reader.
    #[inline]
    pub fn trimmed<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        if self.reader.reads_more_values() { trimmed(text) } else { trimmed_of_ascii(text) }
    }

    /// Whether a number equals one that stands for null.
    #[inline]
    pub fn is_null_number(&self, text: &[u8]) -> bool {
        !self.null_numbers.is_empty()
            && self.notation.exact(text).is_some_and(|number| self.null_numbers.contains(&number))
    }

    #[inline]
    pub fn is_null(&self, text: &[u8]) -> bool {
        if text.is_empty() { self.empty_is_null } else { self.nulls.iter().any(|marker| marker == text) }
    }

    /// The null markers that are numbers as doubles; of single precision if `is_single`.
    pub fn null_doubles(&self, is_single: bool) -> Vec<f64> {
        let texts = self.nulls.iter().filter_map(|marker| std::str::from_utf8(marker).ok());
        let numbers = texts.map(|marker| marker.replace(char::from(self.notation.point), "."));
        if is_single {
            return numbers.filter_map(|marker| marker.parse::<f32>().ok()).map(f64::from).collect();
        }
        numbers.filter_map(|marker| marker.parse().ok()).collect()
    }

    /// The reject reason of an invalid number.
    pub fn reason(&self, fault: NumberFault, text: &[u8]) -> RejectReason {
        let (kind, text) = (self.kind, quoted(text));
        match fault {
            NumberFault::NotANumber => RejectReason::NotANumber { kind, text },
            NumberFault::OutOfRange => RejectReason::OutOfRange { kind, text },
            NumberFault::NotFinite => RejectReason::NotFinite { text },
            NumberFault::TooManyDigits => match kind {
                FieldType::Decimal { scale, .. } => RejectReason::TooManyDigits { scale, text },
                _ => RejectReason::NotANumber { kind, text },
            },
        }
    }

    /// The reject reason of an invalid time.
    pub fn time_reason(&self, fault: TimeFault, text: &[u8]) -> RejectReason {
        let text = quoted(text);
        match fault {
            TimeFault::Form => {
                let format = self.time.as_ref().map_or_else(String::new, |rule| rule.written().to_owned());
                RejectReason::BadTime { format, text }
            }
            TimeFault::Skipped(zone) => RejectReason::SkippedTime { zone, text },
            TimeFault::Range => RejectReason::TimeRange { text },
        }
    }
}
