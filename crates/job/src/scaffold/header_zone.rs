//! Zones in the names of columns of times: `Time (CET)`, `Date Time, GMT-05:00`, `ts_utc`, `Local Time (Europe/Berlin)`.

use chrono_tz::Tz;
use tidetable_layout::FieldType;
use tidetable_source::sample::Sample;

use crate::scaffold::facts::Facts;
use crate::scaffold::time::EventTime;

/// Abbreviations that stand for one offset wherever they are used, with the zone of clocks that stay at it.
const FIXED: [(&str, Tz); 7] = [
    ("CET", Tz::Etc__GMTMinus1),
    ("MEZ", Tz::Etc__GMTMinus1),
    ("EET", Tz::Etc__GMTMinus2),
    ("MSK", Tz::Etc__GMTMinus3),
    ("JST", Tz::Etc__GMTMinus9),
    ("AEST", Tz::Etc__GMTMinus10),
    ("WET", Tz::Etc__GMT0),
];
/// Those of them whose clocks change, where hours tell that they do.
const CHANGING: [(&str, Tz); 4] = [("CET", Tz::CET), ("MEZ", Tz::CET), ("EET", Tz::EET), ("WET", Tz::WET)];
/// Abbreviations that stand for several zones, or for a part of a year.
const UNCLEAR: [&str; 16] = [
    "CEST", "MESZ", "WEST", "EEST", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "BST", "IST", "AEDT", "AST",
];

/// The zone that the name of a column says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderZone {
    pub column: String,
    /// As the name has it.
    pub written: String,
    pub zone: Tz,
}

impl HeaderZone {
    /// The zone of the columns that `time` is read from, which have no offset; `None` if they say none, or if other columns of
    /// such times say another one.
    pub fn find(sample: &Sample, facts: &Facts, time: &EventTime) -> Option<Self> {
        let mut columns = sample.columns.iter().zip(&sample.spec.columns);
        let locals = columns
            .by_ref()
            .filter(|(found, column)| found.without_offset && column.kind == FieldType::Timestamp)
            .map(|(_, column)| column.name.as_str());
        let locals: Vec<&str> = locals.collect();
        let of_time =
            time.columns(facts).filter(|column| time.is_taken_as_utc || locals.contains(&column.name.as_str()));
        let found = of_time.map(|column| column.name.as_str()).find_map(Self::of_name)?;
        // Hours such as 3A and 3B are of clocks that change.
        let found = if time.needs_zone.is_some() { found.with_summer_time() } else { found };

        let mut others =
            locals.iter().filter(|name| **name != found.column.as_str()).filter_map(|name| Self::of_name(name));
        others.all(|other| other.zone == found.zone).then_some(found)
    }

    /// The zone whose clocks change, for abbreviations that are also used of it all the year.
    fn with_summer_time(self) -> Self {
        let zone = CHANGING.iter().find(|(known, _)| *known == self.written).map_or(self.zone, |(_, zone)| *zone);
        Self { zone, ..self }
    }

    /// The zone that a name says, if there is no doubt about it.
    fn of_name(name: &str) -> Option<Self> {
        words(name).into_iter().find_map(|word| {
            let zone = zone_of_word(word)?;
            Some(Self { column: name.to_owned(), written: word.to_owned(), zone })
        })
    }
}

/// A zone in the name of a column as it is written, also one that is not clear: `EST`, `CET/CEST`, `UTC+05:30`.
pub(crate) fn written(name: &str) -> Option<&str> {
    let is_known = |word: &str| UNCLEAR.contains(&word) || FIXED.iter().any(|(known, _)| *known == word);
    let is_zone = |word: &&str| offset_of(word).is_some() || word.split('/').all(is_known);
    words(name).into_iter().find(is_zone)
}

/// The words of a name, with the signs of zones in them; first those in which `_` may be, as in America/New_York.
fn words(name: &str) -> Vec<&str> {
    let is_gap = |letter: char| letter.is_whitespace() || "(),;[]{}\"".contains(letter);
    let whole = name.split(is_gap);
    whole.clone().chain(whole.flat_map(|word| word.split('_'))).filter(|word| !word.is_empty()).collect()
}

fn zone_of_word(word: &str) -> Option<Tz> {
    if matches!(word.to_ascii_lowercase().as_str(), "utc" | "gmt") {
        return Some(Tz::UTC);
    }
    if let Some(offset) = offset_of(word) {
        return whole_hours(offset);
    }
    let fixed = FIXED.iter().find(|(known, _)| *known == word).map(|(_, zone)| *zone);
    fixed.or_else(|| word.parse().ok().filter(|_| word.contains('/')))
}

/// What follows UTC or GMT in a word: a sign and hours, perhaps with minutes.
fn offset_of(word: &str) -> Option<&str> {
    let offset = word.strip_prefix("UTC").or(word.strip_prefix("GMT"))?;
    let digits = offset.strip_prefix(['+', '-'])?;
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "00"));
    let is_offset = [hours, minutes].iter().all(|part| (1..=2).contains(&part.len()) && part.parse::<u8>().is_ok());
    is_offset.then_some(offset)
}

/// The zone of clocks that stay at an offset; `None` if it is not of whole hours. Its name counts hours west of UTC.
fn whole_hours(offset: &str) -> Option<Tz> {
    let sign = if offset.starts_with('+') { '-' } else { '+' };
    let digits = offset.get(1..)?;
    let hours: u8 = digits.strip_suffix(":00").unwrap_or(digits).parse().ok()?;
    format!("Etc/GMT{sign}{hours}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_names() {
        for (name, zone) in [
            ("Time (CET)", Tz::Etc__GMTMinus1),
            ("Date Time, GMT-05:00", Tz::Etc__GMTPlus5),
            ("Time [UTC+2]", Tz::Etc__GMTMinus2),
            ("ts_utc", Tz::UTC),
            ("Local Time (Europe/Berlin)", Tz::Europe__Berlin),
            ("time America/New_York", Tz::America__New_York),
        ] {
            assert_eq!(HeaderZone::of_name(name).map(|found| found.zone), Some(zone), "{name}");
        }
        for name in
            ["time", "Time (CST)", "MTU (CET/CEST)", "Time (EST/EDT)", "Time IST", "Time (UTC+05:30)", "a/b", "W/m2"]
        {
            assert_eq!(HeaderZone::of_name(name), None, "{name}");
        }
        assert_eq!(written("MTU (CET/CEST)"), Some("CET/CEST"));
        assert_eq!(written("Time (UTC+05:30)"), Some("UTC+05:30"));
        assert_eq!(written("time"), None);
    }
}
