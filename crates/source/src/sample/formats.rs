//! The formats of times and dates that are tried.

use std::sync::OnceLock;

use tidetable_layout::FieldType;

const DAYS: [&str; 23] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
    "%Y%m%d",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d/%b/%Y",
    "%b-%d-%Y",
    "%b/%d/%Y",
    "%d. %b %Y",
    "%d de %b de %Y",
    "%Y-%b-%d",
];
/// Months, quarters and weeks stand for their first day.
const COARSE: [&str; 15] = [
    "%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b %Y", "%b-%Y", "%b-%y", "%b %y", "%Y %b", "%Y-%b", "%YM%m", "%YQ%q",
    "%Y-Q%q", "%Y Q%q", "Q%q %Y",
];
const CLOCKS: [&str; 15] = [
    "%H:%M:%S",
    "%H:%M:%S%.3f",
    "%H:%M:%S%.f",
    "%H:%M",
    "%H%M%S",
    "%H%M",
    "%H",
    "%I:%M:%S %p",
    "%I:%M %p",
    "%I:%M%p",
    "%H:%M:%S,%f",
    "%H:%M:%S:%3f",
    "%I:%M:%S%p",
    "%Hh%M",
    "%I:%M:%S%.f %p",
];
const BETWEEN: [&str; 5] = [" ", "T", ":", ", ", "_"];
/// Suffixes, and whether each is an offset.
const OFFSETS: [(&str, bool); 6] =
    [("", false), ("Z", true), (" UTC", true), ("%z", true), (" %z", true), (" %Z", true)];
/// Whole formats with a weekday, and whether each holds an offset.
const WITH_WEEKDAY: [(&str, bool); 7] = [
    ("%a %b %d %Y %H:%M:%S GMT%z", true),
    ("%a, %d %b %Y %H:%M:%S %z", true),
    ("%a, %d %b %Y %H:%M:%S %Z", true),
    ("%a %b %d %H:%M:%S %Z %Y", true),
    ("%a %b %d %H:%M:%S %z %Y", true),
    ("%a %b %d %H:%M:%S %Y", false),
    ("%a %b %d %Y %H:%M:%S", false),
];

/// Every format that is tried, with whether it holds an offset; the plainest first.
pub(super) fn all() -> &'static [(FieldType, String, bool)] {
    static FORMATS: OnceLock<Vec<(FieldType, String, bool)>> = OnceLock::new();
    FORMATS.get_or_init(|| {
        let days = DAYS.iter().chain(&COARSE).map(|day| (FieldType::Date, (*day).to_owned(), false));
        let moments = DAYS.iter().flat_map(|day| {
            CLOCKS.iter().flat_map(move |clock| {
                BETWEEN.iter().flat_map(move |between| {
                    OFFSETS.iter().map(move |(end, offset)| {
                        (FieldType::Timestamp, format!("{day}{between}{clock}{end}"), *offset)
                    })
                })
            })
        });
        let with_weekday =
            WITH_WEEKDAY.iter().map(|(format, offset)| (FieldType::Timestamp, (*format).to_owned(), *offset));
        days.chain(moments).chain(with_weekday).collect()
    })
}

/// The formats of a time that is written as so many digits and nothing else; the likeliest first.
pub(super) fn of_digits(count: usize) -> Option<(FieldType, &'static [&'static str])> {
    Some(match count {
        6 => (FieldType::Date, &["%Y%m", "%y%m%d"]),
        8 => (FieldType::Date, &["%Y%m%d"]),
        10 => (FieldType::Timestamp, &["%Y%m%d%H", "%y%m%d%H%M"]),
        12 => (FieldType::Timestamp, &["%Y%m%d%H%M", "%y%m%d%H%M%S"]),
        14 => (FieldType::Timestamp, &["%Y%m%d%H%M%S"]),
        17 => (FieldType::Timestamp, &["%Y%m%d%H%M%S%3f"]),
        _ => return None,
    })
}
