//! What a source says about each of its columns, ready for reading.

use tidetable_layout::FieldType;

use crate::column::Column;
use crate::error::SourceError;
use crate::number::NumberFault;
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
    /// Null markers but the empty one.
    nulls: Vec<Vec<u8>>,
    empty_is_null: bool,
    /// `.` or `,`.
    pub point: u8,
    /// Whether a field in a short form is a value for sure. Not where a null marker looks like one (-999).
    pub short: bool,
}

/// Plans of all columns of a source, in declared order.
pub(crate) fn plans(spec: &SourceSpec) -> Result<Vec<ColumnPlan>, SourceError> {
    spec.columns.iter().map(|column| ColumnPlan::new(spec, column)).collect()
}

impl ColumnPlan {
    fn new(spec: &SourceSpec, column: &ColumnSpec) -> Result<Self, SourceError> {
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
        let mut plan = Self {
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
        };
        let looks_like_value = |marker: &Vec<u8>| Column::new(&plan, 1).value(marker).is_ok();
        plan.short = !plan.nulls.iter().any(looks_like_value);
        Ok(plan)
    }

    #[inline]
    pub fn is_null(&self, text: &[u8]) -> bool {
        if text.is_empty() { self.empty_is_null } else { self.nulls.iter().any(|marker| marker == text) }
    }

    /// The reason of a number that is none.
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

    /// The reason of a time that is none.
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
