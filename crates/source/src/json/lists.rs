//! Which lists of records hold samples, each an event: not labels, tags or gateways of a record that is an event itself.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::json::scan::Kind;

/// Records of which one may lack the list of its samples.
const ENOUGH: usize = 10;
/// Seconds since the epoch of the times from 1990 to 2100; the same in milliseconds, microseconds and nanoseconds.
const EPOCHS: std::ops::Range<f64> = 631_152_000.0..4_102_444_800.0;

/// Parts of the names of times, and whole names of times.
const TIME_PARTS: [&str; 5] = ["time", "date", "stamp", "epoch", "when"];
const TIME_NAMES: [&str; 5] = ["ts", "t", "at", "dt", "created"];
/// Names of numbers that are not measured.
const COUNTERS: [&str; 12] =
    ["seq", "sequence", "counter", "index", "no", "nr", "number", "version", "port", "status", "code", "channel"];

/// What the values of one name are.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally {
    values: u64,
    /// Numbers, and texts of a number with a point.
    numbers: u64,
    /// Texts of digits alone.
    digits: u64,
    /// Texts that begin like a time, such as `2024-01-31`.
    moments: u64,
    /// Numbers from 1990 to 2100, if they count from the epoch.
    epochs: u64,
}

/// An array that is no list of events yet.
#[derive(Debug, Default)]
pub(super) struct Array {
    /// The number of its elements in each record that has it.
    pub lengths: Vec<usize>,
    pub has_objects: bool,
    pub has_others: bool,
    /// Whether all its elements are arrays.
    pub has_arrays_only: bool,
}

/// The values of records, and their arrays, by their paths.
pub(super) struct Shape<'a> {
    tallies: &'a BTreeMap<String, Tally>,
    arrays: &'a BTreeMap<String, Array>,
    /// The values outside of arrays, for each list of events that they are in; `None` is the record.
    own: HashMap<Option<&'a str>, Own>,
}

/// What a record, or an element of a list of events, has besides its arrays.
#[derive(Debug, Default, Clone, Copy)]
struct Own {
    has_time: bool,
    has_measure: bool,
    is_there: bool,
    /// How often the value is there that is there most often.
    records: usize,
}

impl Tally {
    /// Counts a value, with the text of it.
    pub fn add(&mut self, kind: Kind, text: &[u8]) {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
        match kind {
            Kind::Null => return,
            Kind::Number => self.numbers += 1,
            // NaN stands for a missing number.
            Kind::Text { .. } if number.is_none() && text.parse::<f64>().is_ok() => return,
            Kind::Text { .. } if number.is_some() => match text.contains('.') {
                true => self.numbers += 1,
                false => self.digits += 1,
            },
            Kind::Text { .. } => self.moments += u64::from(is_moment(text)),
            _ => {}
        }
        self.values += 1;
        let units = [1.0, 1e3, 1e6, 1e9];
        self.epochs +=
            u64::from(number.is_some_and(|number| units.iter().any(|unit| EPOCHS.contains(&(number / unit)))));
    }

    fn is_time(self, name: &str) -> bool {
        let are_numbers = self.numbers + self.digits == self.values;
        self.values > 0 && (self.moments == self.values || are_numbers && is_named_time(name))
    }

    /// Whether the values are the first of pairs or rows, and all count from the epoch.
    fn is_first_time(self, name: &str) -> bool {
        self.values > 0 && self.epochs == self.values && name.ends_with(".0")
    }

    /// Whether the values are measured ones. A text of digits may also be an id, such as a phone number.
    fn is_measure(self, name: &str, with_digits: bool) -> bool {
        let numbers = self.numbers + if with_digits { self.digits } else { 0 };
        self.values > 0 && numbers == self.values && !self.is_time(name) && !is_id(name)
    }
}

impl<'a> Shape<'a> {
    /// The shape of records with these values and arrays, of which `lists` are known to be lists of events.
    pub fn new(tallies: &'a BTreeMap<String, Tally>, arrays: &'a BTreeMap<String, Array>, lists: &'a [String]) -> Self {
        let mut own: HashMap<Option<&str>, Own> = HashMap::new();
        for (name, tally) in tallies {
            if arrays.contains_key(name) || parents(name).any(|parent| arrays.contains_key(parent)) {
                continue;
            }
            let scopes =
                parents(name).filter(|parent| lists.binary_search_by(|list| list.as_str().cmp(parent)).is_ok());
            for scope in scopes.map(Some).chain([None]) {
                let own = own.entry(scope).or_default();
                own.is_there = true;
                own.has_time |= tally.is_time(name);
                own.has_measure |= tally.is_measure(name, false);
                own.records = own.records.max(tally.values as usize);
            }
        }
        Self { tallies, arrays, own }
    }

    /// Whether the elements of arrays that lie side by side, in the `scope` of a list of events, are events.
    pub fn are_samples(&self, paths: &[&str], scope: Option<&str>) -> bool {
        let Some(array) = paths.first().and_then(|path| self.arrays.get(*path)) else { return false };
        let filled = array.lengths.iter().filter(|length| **length > 0).count();
        let elements: usize = array.lengths.iter().sum();

        let items = || paths.iter().flat_map(|path| self.items(path));
        let has_time = items().any(|(name, tally)| tally.is_time(name) || tally.is_first_time(name));
        let has_measure = items().any(|(name, tally)| tally.is_measure(name, true));

        let own = self.own.get(&scope).copied().unwrap_or_default();
        let records = own.records.max(array.lengths.len());
        let is_everywhere = filled * ENOUGH >= records * (ENOUGH - 1);

        match (own.has_time, own.has_measure) {
            (true, true) => has_time && is_everywhere && elements >= 2 * filled,
            (false, true) => has_time,
            // Single values side by side are the axes of a sensor as well.
            (true, false) if paths.len() > 1 => has_time && is_everywhere,
            (true, false) => (has_time || has_measure) && is_everywhere,
            (false, false) => has_time || has_measure || !own.is_there,
        }
    }

    /// Whether the elements of an array are pairs of a time and a value.
    pub fn are_pairs(&self, path: &str) -> bool {
        let of = |place: usize| self.tallies.get(&format!("{path}.{place}")).copied().unwrap_or_default();
        let (first, second) = (of(0), of(1));
        let has_time = first.values > 0 && first.values == first.moments.max(first.epochs);
        has_time && second.values > 0
    }

    /// Whether an array has only numbers.
    pub fn are_numbers(&self, path: &str) -> bool {
        self.tallies.get(path).is_some_and(|tally| tally.values > 0 && tally.numbers == tally.values)
    }

    /// What the elements of an array have.
    fn items(&self, path: &str) -> impl Iterator<Item = (&String, &Tally)> {
        // `/` is the letter behind the point.
        let inside = self.tallies.range(format!("{path}.")..format!("{path}/"));
        let values = (Bound::Included(path), Bound::Included(path));
        self.tallies.range::<str, _>(values).chain(inside)
    }
}

/// The paths that a name may lie in: each part of it before a point, the longest first.
pub(super) fn parents(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('.').filter_map(|(at, _)| name.get(..at))
}

/// Whether a name leads into the value at `path`.
pub(super) fn is_inside(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a text begins with a day, such as `2024-01-31` or `31.01.2024`.
fn is_moment(text: &str) -> bool {
    let is_sign = |letter: &char| matches!(letter, '-' | '/' | '.' | ':');
    let start: Vec<char> = text.chars().take(10).collect();
    let digits = start.iter().filter(|letter| letter.is_ascii_digit()).count();
    text.len() >= 8
        && text.starts_with(|letter: char| letter.is_ascii_digit())
        && digits >= 6
        && start.iter().filter(|letter| is_sign(letter)).count() == 2
}

/// The last part of a name, in lower case.
fn last_of(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).to_lowercase()
}

fn is_named_time(name: &str) -> bool {
    let last = last_of(name);
    TIME_PARTS.iter().any(|part| last.contains(part)) || TIME_NAMES.contains(&last.as_str())
}

/// Whether a name is one of ids or counters, whose numbers are not measured.
fn is_id(name: &str) -> bool {
    let last = last_of(name);
    let ends = ["_id", "-id", "Id", "ID"].iter().any(|end| name.ends_with(end));
    ends || last == "id" || COUNTERS.iter().any(|word| last == *word || last.ends_with(&format!("_{word}")))
}

#[cfg(test)]
mod tests {
    use crate::json::likely_lists;

    #[test]
    fn lists_of_labels_are_no_events() {
        let lists = |text: &str| likely_lists(text.as_bytes());
        let none = [""; 0];
        let labels = r#"{"time":"2024-05-01 00:00:00","cost":1.5,"labels":[{"key":"env","value":"prod"}]}"#;
        assert_eq!(lists(labels), none);
        // Gateways have numbers, but the reading is of the record.
        let gateways = r#"{"at":"2024-01-01T00:00:00Z","temp":20,"rx":[{"gw":"a","rssi":-60},{"gw":"b","rssi":-90}]}"#;
        assert_eq!(lists(gateways), none);
        // Without a reading of its own, the record is what its list has.
        let metrics = r#"{"at":"2024-01-01T00:00:00Z","id":7,"metrics":[{"name":"a","value":"1.5"}]}"#;
        assert_eq!(lists(metrics), ["metrics"]);
        let seldom = format!("{metrics}\n{}", r#"{"at":"2024-01-01T00:00:00Z","id":7,"metrics":[]}"#);
        assert_eq!(lists(&seldom), none);
        let samples = r#"{"lat":1.5,"samples":[{"ts":1700000000,"v":1}]}"#;
        assert_eq!(lists(samples), ["samples"]);
        assert_eq!(lists(r#"{"ts":1700000000,"v":1.5,"tags":["a","b"],"more":["c","d"]}"#), none);
    }

    #[test]
    fn pairs_of_time_and_value_are_events() {
        let text = br#"{"data":{"result":[{"metric":{"a":"b"},"values":[[1704067200,"0.5"],[1704067260,"NaN"]]}]}}"#;
        assert_eq!(likely_lists(text), ["data.result.values"]);
    }

    #[test]
    fn axes_of_a_sensor_are_no_events() {
        let text = br#"{"at":"2024-01-01T00:00:00Z","acceleration":[0.5,0.25,1],"turn":[1,2,3]}"#;
        assert_eq!(likely_lists(text), [""; 0]);
    }

    #[test]
    fn time_is_linear_in_the_number_of_lists() {
        let lists: Vec<String> = (0..1500).map(|at| format!("\"s{at}\":[{{\"a\":\"x\",\"b\":\"y\"}}]")).collect();
        let line = format!("{{\"ts\":1700000000,\"v\":1.5,{}}}\n", lists.join(","));
        assert_eq!(likely_lists(line.repeat(4).as_bytes()), [""; 0]);
    }
}
