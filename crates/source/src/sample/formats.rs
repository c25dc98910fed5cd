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
/// Whole formats, and whether each holds an offset: a row for each program or country that writes times in its own way.
const WHOLE: [(&str, bool); 51] = [
    // With a weekday: JavaScript, mail, `date`, and mail without its comma.
    ("%a %b %d %Y %H:%M:%S GMT%z", true),
    ("%a, %d %b %Y %H:%M:%S %z", true),
    ("%a, %d %b %Y %H:%M:%S %Z", true),
    ("%a %b %d %H:%M:%S %Z %Y", true),
    ("%a %b %d %H:%M:%S %z %Y", true),
    ("%a %b %d %H:%M:%S %Y", false),
    ("%a %b %d %Y %H:%M:%S", false),
    ("%a %d %b %Y %H:%M:%S %z", true),
    ("%a %d %b %Y %H:%M:%S %Z", true),
    // SAS and Stata: 01JAN2024:00:15:00, 01jan2024 00:15:00.
    ("%d%b%Y", false),
    ("%d%b%Y:%H:%M:%S%.f", false),
    ("%d%b%Y:%H:%M", false),
    ("%d%b%y:%H:%M:%S%.f", false),
    ("%d%b%y:%H:%M", false),
    ("%d%b%Y %H:%M:%S%.f", false),
    ("%d%b%Y %H:%M", false),
    // Oracle: 01-JAN-24 12.15.00.000000000 AM.
    ("%d-%b-%y %I.%M.%S%.f %p", false),
    ("%d-%b-%y %I.%M.%S%.f %p %z", true),
    ("%d-%b-%y %H.%M.%S%.f", false),
    ("%d-%b-%Y %H.%M.%S%.f", false),
    // DB2: 2024-01-01-00.15.00.000000.
    ("%Y-%m-%d-%H.%M.%S%.f", false),
    // Web servers, with their brackets.
    ("[%d/%b/%Y:%H:%M:%S %z]", true),
    // Java: 2024-01-14T22:00+01:00[Europe/Berlin].
    ("%Y-%m-%dT%H:%M:%S%.f%z[%*", true),
    ("%Y-%m-%dT%H:%M%z[%*", true),
    // Years of two digits between dashes.
    ("%d-%m-%y", false),
    ("%m-%d-%y", false),
    ("%y-%m-%d", false),
    ("%d-%m-%y %H:%M", false),
    ("%m-%d-%y %H:%M", false),
    ("%y-%m-%d %H:%M", false),
    ("%d-%m-%y %H:%M:%S", false),
    ("%m-%d-%y %H:%M:%S", false),
    ("%y-%m-%d %H:%M:%S", false),
    // Clocks with points: Finland, Denmark, Italy.
    ("%d.%m.%Y %H.%M", false),
    ("%d.%m.%Y %H.%M.%S", false),
    ("%d-%m-%Y %H.%M", false),
    ("%d-%m-%Y %H.%M.%S", false),
    ("%d/%m/%Y %H.%M", false),
    ("%d/%m/%Y %H.%M.%S", false),
    ("%Y-%m-%d %H.%M", false),
    ("%Y-%m-%d %H.%M.%S", false),
    // Words and blanks around the parts: Sweden, Germany, Hungary, Czechia, Japan.
    ("%Y-%m-%d kl. %H:%M", false),
    ("%d.%m.%Y %H:%M Uhr", false),
    ("%Y. %m. %d.", false),
    ("%Y. %m. %d. %H:%M", false),
    ("%Y. %m. %d. %H:%M:%S", false),
    ("%d. %m. %Y %H:%M", false),
    ("%d. %m. %Y %H:%M:%S", false),
    ("%d %m %Y %H:%M", false),
    ("%Y年%m月%d日", false),
    ("%Y年%m月%d日 %H:%M", false),
];
/// Days, clocks and offsets in words, which go together: 2024-01-14 22:00:00 GMT+1.
const DAYS_OF_WORDS: [&str; 4] = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"];
const CLOCKS_OF_WORDS: [&str; 4] = ["%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p"];
const OFFSETS_IN_WORDS: [&str; 4] = [" GMT%-z", " UTC%-z", " (GMT%-z)", " (UTC%-z)"];

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
        let in_words = DAYS_OF_WORDS.iter().flat_map(|day| {
            CLOCKS_OF_WORDS.iter().flat_map(move |clock| {
                OFFSETS_IN_WORDS.iter().map(move |end| (FieldType::Timestamp, format!("{day} {clock}{end}"), true))
            })
        });
        let whole = WHOLE.iter().map(|(format, offset)| {
            let has_clock = format.contains(['H', 'I']);
            let kind = if has_clock { FieldType::Timestamp } else { FieldType::Date };
            (kind, (*format).to_owned(), *offset)
        });
        days.chain(moments).chain(whole).chain(in_words).collect()
    })
}

/// Whether codes are often written in this format of days, so that a name has to say that they are days.
pub(super) fn is_like_code(format: &str) -> bool {
    matches!(format, "%d-%m-%y" | "%m-%d-%y" | "%y-%m-%d")
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
