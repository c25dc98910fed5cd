//! The plan of a column: type, null markers, time format.

use tidetable_layout::FieldType;

use crate::error::SourceError;
use crate::number::NumberFault;
use crate::reader_version::ReaderVersion;
use crate::reject::{RejectReason, quoted};
use crate::spec::{ColumnSpec, SourceSpec};
use crate::time::{TimeFault, TimeRule};

/// How one declared column is read.
#[derive(Debug)]
pub(crate) struct ColumnPlan {
    pub name: String,
    pub kind: FieldType,
    /// Of Timestamp and Date columns.
    pub time: Option<TimeRule>,
    /// Null markers except the empty one.
    pub(crate) nulls: Vec<Vec<u8>>,
    empty_is_null: bool,
    /// `.` or `,`.
    pub point: u8,
    /// Whether a field in a short form is certainly a value: no null marker looks like one (such as -999).
    pub short: bool,
    /// The reading rules of the file.
    #[expect(dead_code, reason = "no rule of values differs between versions yet")]
    pub reader: ReaderVersion,
}

impl ColumnPlan {
    pub(crate) fn new(spec: &SourceSpec, column: &ColumnSpec, reader: ReaderVersion) -> Result<Self, SourceError> {
        let format = column.format.as_deref();
        let time = match column.kind {
            FieldType::Timestamp => Some(TimeRule::timestamp(format, column.timezone)),
            FieldType::Date => Some(TimeRule::date(format)),
            _ => None,
        };
        let time = time.transpose().map_err(|fault| SourceError::TimeFormat {
            column: column.name.clone(),
            format: format.unwrap_or_default().to_owned(),
            fault,
        })?;
        let point = if spec.csv.decimal_comma { b',' } else { b'.' };
        let is_text = column.kind == FieldType::Text;
        let markers = spec.csv.null.iter().map(|marker| if is_text { marker.as_str() } else { blanks_off(marker) });
        Ok(Self {
            name: column.name.clone(),
            kind: column.kind,
            time,
            nulls: markers
                .clone()
                .filter(|marker| !marker.is_empty())
                .map(|marker| marker.as_bytes().to_vec())
                .collect(),
            empty_is_null: markers.clone().any(str::is_empty),
            point,
            short: false,
            reader,
        })
    }

    #[inline]
    pub fn is_null(&self, text: &[u8]) -> bool {
        if text.is_empty() { self.empty_is_null } else { self.nulls.iter().any(|marker| marker == text) }
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

fn blanks_off(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}
