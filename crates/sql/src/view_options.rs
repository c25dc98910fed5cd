//! Options of row views, as in GoogleSQL for Bigtable, and the cells that they select.

use std::fmt;
use std::ops::Range;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::scalar::ScalarValue;
use tidetable_functions::parse_time;
use tidetable_store::read::ALL_TIMES;

use crate::error::SqlError;

/// The cells that a view of rows shows, as its options ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellsShown {
    /// All versions with timestamps, not only the newest of each column.
    pub(crate) with_history: bool,
    /// Range of the timestamps of cells, in microseconds, half-open.
    pub(crate) time: Range<i64>,
    /// Greatest number of versions that are shown of a column.
    pub(crate) versions: usize,
    /// Whether cells that garbage collection hides are shown.
    pub(crate) include_expired: bool,
}

impl Default for CellsShown {
    /// Shows only the newest cell of each column.
    fn default() -> Self {
        Self { with_history: false, time: ALL_TIMES, versions: 1, include_expired: false }
    }
}

/// An option of a view; its variants are the only list of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewOption {
    WithHistory,
    AsOf,
    After,
    AfterOrEqual,
    Before,
    BeforeOrEqual,
    LatestN,
    IncludeExpired,
}

impl ViewOption {
    pub(crate) const ALL: [Self; 8] = [
        Self::WithHistory,
        Self::AsOf,
        Self::After,
        Self::AfterOrEqual,
        Self::Before,
        Self::BeforeOrEqual,
        Self::LatestN,
        Self::IncludeExpired,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WithHistory => "with_history",
            Self::AsOf => "as_of",
            Self::After => "after",
            Self::AfterOrEqual => "after_or_equal",
            Self::Before => "before",
            Self::BeforeOrEqual => "before_or_equal",
            Self::LatestN => "latest_n",
            Self::IncludeExpired => "include_expired",
        }
    }

    /// # Errors
    /// If there is no such option.
    pub(crate) fn named(name: &str) -> Result<Self, SqlError> {
        let found = Self::ALL.into_iter().find(|option| option.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| SqlError::UnknownOption { option: name.to_owned(), known: Self::names() })
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether it applies to versions and so needs history.
    fn needs_history(self) -> bool {
        !matches!(self, Self::WithHistory | Self::AsOf | Self::IncludeExpired)
    }
}

impl CellsShown {
    /// Evaluates `options`. `unpacks`: for `UNPACK`, which implies `with_history`.
    ///
    /// # Errors
    /// If a value has the wrong type, an option is repeated, or options contradict each other.
    pub(crate) fn new(options: &[(ViewOption, ScalarValue)], unpacks: bool) -> Result<Self, SqlError> {
        let mut shown = Self { with_history: unpacks, ..Self::default() };
        let mut latest_n = None;

        for (at, (option, value)) in options.iter().enumerate() {
            if options.iter().take(at).any(|(earlier, _)| earlier == option) {
                return Err(SqlError::RepeatedOption { option: option.name() });
            }
            let (start, end) = (&mut shown.time.start, &mut shown.time.end);
            match option {
                ViewOption::WithHistory => shown.with_history = boolean(*option, value)?,
                ViewOption::IncludeExpired => shown.include_expired = boolean(*option, value)?,
                ViewOption::LatestN => latest_n = Some(at_least_one(*option, value)?),
                ViewOption::After => *start = time(*option, value)?.saturating_add(1).max(*start),
                ViewOption::AfterOrEqual => *start = time(*option, value)?.max(*start),
                ViewOption::Before => *end = time(*option, value)?.min(*end),
                ViewOption::BeforeOrEqual | ViewOption::AsOf => {
                    *end = time(*option, value)?.saturating_add(1).min(*end);
                }
            }
        }

        let has = |option: ViewOption| options.iter().any(|(other, _)| *other == option);
        if unpacks && !shown.with_history {
            return Err(SqlError::UnpackWithoutHistory);
        }
        if shown.with_history && has(ViewOption::AsOf) {
            return Err(SqlError::AsOfWithHistory);
        }
        if !shown.with_history
            && let Some((option, _)) = options.iter().find(|(option, _)| option.needs_history())
        {
            return Err(SqlError::NeedsHistory { option: option.name() });
        }
        let pairs = [(ViewOption::After, ViewOption::AfterOrEqual), (ViewOption::Before, ViewOption::BeforeOrEqual)];
        if let Some((one, other)) = pairs.into_iter().find(|(one, other)| has(*one) && has(*other)) {
            return Err(SqlError::BothOptions { one: one.name(), other: other.name() });
        }

        if shown.with_history {
            shown.versions = latest_n.unwrap_or(usize::MAX);
        }
        Ok(shown)
    }

    /// Whether the options bound the timestamps of cells.
    pub(crate) fn is_bounded(&self) -> bool {
        self.time != ALL_TIMES
    }
}

impl fmt::Display for CellsShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.with_history { "history" } else { "newest" })?;
        if self.with_history && self.versions != usize::MAX {
            write!(f, " of {}", self.versions)?;
        }
        if self.include_expired {
            f.write_str(" with expired")?;
        }
        Ok(())
    }
}

fn wrong(option: ViewOption, wanted: &'static str, value: &ScalarValue) -> SqlError {
    SqlError::WrongOption { option: option.name(), wanted, found: value.to_string() }
}

fn boolean(option: ViewOption, value: &ScalarValue) -> Result<bool, SqlError> {
    match value {
        ScalarValue::Boolean(Some(value)) => Ok(*value),
        _ => Err(wrong(option, "true or false", value)),
    }
}

fn at_least_one(option: ViewOption, value: &ScalarValue) -> Result<usize, SqlError> {
    let number = if value.data_type().is_integer() { value.cast_to(&DataType::Int64).ok() } else { None };
    match number {
        Some(ScalarValue::Int64(Some(number))) if number >= 1 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        _ => Err(wrong(option, "a whole number of 1 or more", value)),
    }
}

fn time(option: ViewOption, value: &ScalarValue) -> Result<i64, SqlError> {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let time = match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => parse_time(text),
        value if matches!(value.data_type(), DataType::Timestamp(..) | DataType::Date32) => {
            match value.cast_to(&micros) {
                Ok(ScalarValue::TimestampMicrosecond(time, _)) => time,
                _ => None,
            }
        }
        _ => None,
    };
    match time {
        Some(time) => Ok(time),
        None => Err(wrong(option, "a timestamp, such as TIMESTAMP '2018-01-05 00:00:00'", value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> ScalarValue {
        ScalarValue::TimestampMicrosecond(Some(micros), None)
    }

    fn yes() -> (ViewOption, ScalarValue) {
        (ViewOption::WithHistory, ScalarValue::Boolean(Some(true)))
    }

    #[test]
    fn bounds_become_a_half_open_range() {
        for (option, expected) in [
            (ViewOption::After, 11..i64::MAX),
            (ViewOption::AfterOrEqual, 10..i64::MAX),
            (ViewOption::Before, i64::MIN..10),
            (ViewOption::BeforeOrEqual, i64::MIN..11),
        ] {
            assert_eq!(CellsShown::new(&[yes(), (option, at(10))], false).unwrap().time, expected, "{option:?}");
            assert_eq!(CellsShown::new(&[(option, at(10))], true).unwrap().time, expected, "{option:?}");
        }
        let as_of = CellsShown::new(&[(ViewOption::AsOf, at(10))], false).unwrap();
        assert_eq!((as_of.time, as_of.versions), (i64::MIN..11, 1));
        let text = CellsShown::new(&[(ViewOption::AsOf, ScalarValue::from("1970-01-01T00:00:01Z"))], false).unwrap();
        assert_eq!(text.time.end, 1_000_001);
    }

    #[test]
    fn contradicting_options_are_refused() {
        let refused = |options: &[(ViewOption, ScalarValue)]| CellsShown::new(options, false).unwrap_err().to_string();
        let latest = |n: i64| (ViewOption::LatestN, ScalarValue::Int64(Some(n)));
        assert!(refused(&[latest(2)]).contains("with_history => true"), "{}", refused(&[latest(2)]));
        assert!(refused(&[yes(), latest(0)]).contains("1 or more"));
        assert!(refused(&[yes(), (ViewOption::LatestN, ScalarValue::from("2"))]).contains("1 or more"));
        assert!(refused(&[yes(), (ViewOption::AsOf, at(1))]).contains("before_or_equal"));
        assert!(refused(&[yes(), yes()]).contains("twice"));
        assert!(refused(&[(ViewOption::WithHistory, ScalarValue::Int64(Some(1)))]).contains("true or false"));
        assert!(refused(&[(ViewOption::AsOf, ScalarValue::Int64(Some(1)))]).contains("a timestamp"));
        assert!(refused(&[(ViewOption::AsOf, ScalarValue::from("soon"))]).contains("soon"));
        let both = [yes(), (ViewOption::Before, at(1)), (ViewOption::BeforeOrEqual, at(1))];
        assert!(refused(&both).contains("before_or_equal"));
        let no = (ViewOption::WithHistory, ScalarValue::Boolean(Some(false)));
        assert!(CellsShown::new(&[no], true).is_err());
        assert!(ViewOption::named("latest").unwrap_err().to_string().contains("latest_n"));
        assert_eq!(ViewOption::named("WITH_HISTORY").unwrap(), ViewOption::WithHistory);
    }
}
