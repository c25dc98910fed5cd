//! What the first records of a text have: the names of their values, and their lists.

use std::collections::{BTreeMap, HashMap};

use crate::json::lists::{Array, Shape, Tally, is_inside, parents};
use crate::json::otel;
use crate::json::scan::{Fault, Kind, Scanner, Value, unescaped};

/// Lists of pairs that go side by side, and places of a list of numbers that are columns: at most so many.
const MOST_PAIRS: usize = 8;
const MOST_PLACES: usize = 16;
/// Lists inside each other that are events.
const DEEPEST: usize = 4;
/// Most names that are collected: objects may have keys that are values.
const MOST_NAMES: usize = 5000;

/// Which objects are looked into for names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// All of them: each value has a name.
    All,
    /// Those that these names lead into; any other is one value.
    Declared(&'a [&'a str]),
}

/// What the records of a text have.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    wanted: Wanted<'a>,
    lists: &'a [String],
    /// The names of values, in the order of their first appearance.
    pub found: Vec<String>,
    seen: HashMap<String, u64>,
    /// The lists of events, and what leads to them, with the number of their elements.
    elements: HashMap<String, u64>,
    /// Arrays that are no lists of events, by their paths.
    arrays: BTreeMap<String, Array>,
    /// What the values are, of arrays those of their elements.
    tallies: BTreeMap<String, Tally>,
    pub records: u64,
}

impl<'a> Names<'a> {
    pub fn new(wanted: Wanted<'a>, lists: &'a [String]) -> Self {
        Self {
            wanted,
            lists,
            found: Vec::new(),
            seen: HashMap::new(),
            elements: HashMap::new(),
            arrays: BTreeMap::new(),
            tallies: BTreeMap::new(),
            records: 0,
        }
    }

    /// Adds the names of the whole lines of `text`; with `is_otel`, of their events. What is no JSON has none.
    pub fn read(mut self, text: &[u8], is_otel: bool) -> Self {
        let mut events = Vec::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            if !is_otel {
                // A record with a fault is rejected by the reader.
                let _ = self.record(line);
                continue;
            }
            events.clear();
            if otel::events(line, &mut events).is_ok() {
                for event in events.split(|byte| *byte == b'\n').filter(|event| !event.is_empty()) {
                    let _ = self.record(event);
                }
            }
        }
        self
    }

    /// Whether this list of events is there.
    pub fn has_list(&self, list: &str) -> bool {
        self.elements.contains_key(list)
    }

    /// Whether every record, or every element of its list, has the value.
    pub fn is_everywhere(&self, name: &str) -> bool {
        let inside = self.elements.iter().filter(|(list, _)| is_inside(name, list) || *list == name);
        let of = inside.max_by_key(|(list, _)| list.len()).map_or(self.records, |(_, elements)| *elements);
        self.seen.get(name).is_some_and(|count| *count >= of)
    }

    /// Whether values of this name are lists, and not one in so many of them.
    pub fn is_mostly_list(&self, name: &str) -> bool {
        let lists = self.arrays.get(name).map_or(0, |array| array.lengths.len() as u64);
        self.seen.get(name).is_some_and(|seen| lists * 2 > *seen)
    }

    /// The names of the places of an array of numbers that has as many of them in every record; `None` for others.
    pub fn places(&self, name: &str) -> Option<Vec<String>> {
        let array = self.arrays.get(name).filter(|array| !array.has_objects && !array.has_arrays_only)?;
        let count = *array.lengths.first()?;
        let is_even = array.lengths.iter().all(|length| *length == count) && (2..=MOST_PLACES).contains(&count);
        let are_numbers = Shape::new(&self.tallies, &self.arrays, &[]).are_numbers(name);
        (is_even && are_numbers).then(|| (0..count).map(|at| format!("{name}.{at}")).collect())
    }

    /// Whether the elements of this array are objects, which `each` can make events of.
    pub fn is_list_of_objects(&self, name: &str) -> bool {
        self.arrays.get(name).is_some_and(|array| array.has_objects && !array.has_others)
    }

    /// The lists whose elements are most likely events: an array of objects, pairs of a time and a value, or arrays of
    /// values side by side.
    fn likely_lists(&self) -> Vec<String> {
        let mut known = self.lists.to_vec();
        known.sort_unstable();
        let scope = |path: &str| parents(path).find_map(|parent| known.iter().find(|list| *list == parent));
        let shape = Shape::new(&self.tallies, &self.arrays, &known);
        let mut arrays: Vec<(&String, &Array)> = self.arrays.iter().collect();
        if !known.is_empty() {
            arrays.retain(|(path, _)| scope(path).is_some());
        }
        let are_samples = |paths: &[&str]| {
            let scope = paths.first().and_then(|path| scope(path)).map(String::as_str);
            shape.are_samples(paths, scope)
        };

        let objects = arrays
            .iter()
            .filter(|(path, array)| array.has_objects && !array.has_others && are_samples(&[path.as_str()]));
        if let Some((path, _)) = objects.max_by_key(|(_, array)| array.lengths.iter().sum::<usize>()) {
            return vec![String::clone(path)];
        }

        arrays.retain(|(_, array)| array.has_others && !array.has_objects);
        let mut pairs = arrays
            .iter()
            .filter(|(path, array)| array.has_arrays_only && shape.are_pairs(path) && are_samples(&[path.as_str()]));
        if let Some((path, first)) = pairs.next() {
            // Those of one length beside it go with it, such as prices and volumes of the same times.
            let beside = pairs.filter(|(other, array)| parent(other) == parent(path) && array.lengths == first.lengths);
            let beside = beside.map(|(other, _)| String::clone(other)).take(MOST_PAIRS - 1);
            return std::iter::once(String::clone(path)).chain(beside).collect();
        }

        let mut side_by_side: BTreeMap<(Option<&str>, &[usize]), Vec<&str>> = BTreeMap::new();
        for (path, array) in arrays.iter().filter(|(_, array)| array.lengths.iter().any(|length| *length > 1)) {
            side_by_side.entry((parent(path), &array.lengths)).or_default().push(path);
        }
        let mut groups: Vec<Vec<&str>> = side_by_side.into_values().filter(|paths| paths.len() > 1).collect();
        groups.sort_unstable();
        let found = groups.into_iter().find(|paths| are_samples(paths)).unwrap_or_default();
        found.into_iter().map(str::to_owned).collect()
    }

    fn record(&mut self, line: &[u8]) -> Result<(), Fault> {
        // Only whole records count.
        let mut checked = Scanner::new(line, 0);
        if checked.peek() != Some(b'{') {
            return Ok(());
        }
        checked.value()?;
        checked.end()?;

        self.records += 1;
        let mut scanner = Scanner::new(line, 0);
        scanner.peek();
        self.object(&mut scanner, "")
    }

    fn object(&mut self, scanner: &mut Scanner<'_>, prefix: &str) -> Result<(), Fault> {
        scanner.enter()?;
        let mut is_first = true;
        while let Some(Value { kind, range }) = scanner.key(is_first)? {
            is_first = false;
            let key = unescaped(scanner.text(&range), matches!(kind, Kind::Text { has_escapes: true }));
            let path = format!("{prefix}{}", String::from_utf8_lossy(&key.unwrap_or_default()));
            self.value(scanner, path)?;
        }
        Ok(())
    }

    fn value(&mut self, scanner: &mut Scanner<'_>, path: String) -> Result<(), Fault> {
        match scanner.peek() {
            Some(b'{') if self.looks_into(&path) => {
                self.object(scanner, &format!("{path}."))?;
                if self.is_declared(&path) {
                    self.add(path);
                }
                Ok(())
            }
            Some(b'[') if self.lists.iter().any(|list| *list == path || is_inside(list, &path)) => {
                self.list(scanner, &path)
            }
            Some(b'[') if matches!(self.wanted, Wanted::All) => self.array(scanner, path),
            Some(b'[') if self.looks_into(&path) => self.elements(scanner, &path),
            _ => {
                let value = scanner.value()?;
                self.tally(&path, &value, scanner);
                self.add(path);
                Ok(())
            }
        }
    }

    /// Adds the names of the elements of a list of events, and counts them.
    fn list(&mut self, scanner: &mut Scanner<'_>, path: &str) -> Result<(), Fault> {
        scanner.enter()?;
        let mut count = 0;
        while scanner.element(count == 0)? {
            count += 1;
            match scanner.peek() {
                Some(b'{') => self.object(scanner, &format!("{path}."))?,
                Some(b'[') => self.elements(scanner, path)?,
                _ => {
                    let value = scanner.value()?;
                    self.tally(path, &value, scanner);
                    self.add(path.to_owned());
                }
            }
        }
        *self.elements.entry(path.to_owned()).or_default() += count;
        Ok(())
    }

    /// Adds the elements of an array by their places: `path.0`, `path.1` and so on.
    fn elements(&mut self, scanner: &mut Scanner<'_>, path: &str) -> Result<(), Fault> {
        scanner.enter()?;
        let mut index = 0;
        while scanner.element(index == 0)? {
            self.value(scanner, format!("{path}.{index}"))?;
            index += 1;
        }
        Ok(())
    }

    /// Adds an array as one value, and notes what it has.
    fn array(&mut self, scanner: &mut Scanner<'_>, path: String) -> Result<(), Fault> {
        scanner.enter()?;
        let mut found = Array { has_arrays_only: true, ..Array::default() };
        let mut count = 0;
        while scanner.element(count == 0)? {
            let first = scanner.peek();
            found.has_objects |= first == Some(b'{');
            found.has_others |= first != Some(b'{');
            found.has_arrays_only &= first == Some(b'[');
            self.tally_inside(scanner, &path, true)?;
            count += 1;
        }

        let array = self.arrays.entry(path.clone()).or_insert(Array { has_arrays_only: true, ..Array::default() });
        array.lengths.push(count);
        array.has_objects |= found.has_objects;
        array.has_others |= found.has_others;
        array.has_arrays_only &= found.has_arrays_only;
        self.add(path);
        Ok(())
    }

    /// Goes past a value in an array, and notes what its values are. An array that is an element is a tuple: its places
    /// have names of their own.
    fn tally_inside(&mut self, scanner: &mut Scanner<'_>, path: &str, is_element: bool) -> Result<(), Fault> {
        match scanner.peek() {
            Some(b'{') => {
                scanner.enter()?;
                let mut is_first = true;
                while let Some(key) = scanner.key(is_first)? {
                    is_first = false;
                    let name = String::from_utf8_lossy(scanner.text(&key.range)).into_owned();
                    self.tally_inside(scanner, &format!("{path}.{name}"), false)?;
                }
            }
            Some(b'[') => {
                scanner.enter()?;
                let mut index = 0;
                while scanner.element(index == 0)? {
                    let place = if is_element { format!("{path}.{index}") } else { path.to_owned() };
                    self.tally_inside(scanner, &place, true)?;
                    index += 1;
                }
            }
            _ => {
                let value = scanner.value()?;
                self.tally(path, &value, scanner);
            }
        }
        Ok(())
    }

    /// Notes what a value is.
    fn tally(&mut self, path: &str, value: &Value, scanner: &Scanner<'_>) {
        if !matches!(self.wanted, Wanted::All) {
            return;
        }
        let is_known = self.tallies.contains_key(path);
        if is_known || self.tallies.len() < MOST_NAMES {
            self.tallies.entry(path.to_owned()).or_default().add(value.kind, scanner.text(&value.range));
        }
    }

    /// Whether the values inside have names of their own.
    fn looks_into(&self, path: &str) -> bool {
        match self.wanted {
            Wanted::All => true,
            Wanted::Declared(names) => {
                names.iter().any(|name| is_inside(name, path)) || self.lists.iter().any(|list| is_inside(list, path))
            }
        }
    }

    fn is_declared(&self, path: &str) -> bool {
        matches!(self.wanted, Wanted::Declared(names) if names.contains(&path))
    }

    fn add(&mut self, path: String) {
        match self.seen.get_mut(&path) {
            Some(count) => *count += 1,
            None if self.found.len() < MOST_NAMES => {
                self.found.push(path.clone());
                self.seen.insert(path, 1);
            }
            None => {}
        }
    }
}

/// The lists of the records of `text` whose elements are most likely events, and what is inside of them.
pub(crate) fn likely_lists(text: &[u8]) -> Vec<String> {
    let mut each = Vec::new();
    for _ in 0..DEEPEST {
        let inner = Names::new(Wanted::All, &each).read(text, false).likely_lists();
        if inner.is_empty() {
            break;
        }
        each = inner;
    }
    each
}

fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(parent, _)| parent)
}

/// Whether the first record is a batch of OpenTelemetry.
pub(crate) fn is_otel(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) else { return false };
    let mut scanner = Scanner::new(line, 0);
    if scanner.peek() != Some(b'{') || scanner.enter().is_err() {
        return false;
    }
    let mut is_first = true;
    while let Ok(Some(key)) = scanner.key(is_first) {
        if otel::is_batch_key(scanner.text(&key.range)) {
            return true;
        }
        if scanner.value().is_err() {
            return false;
        }
        is_first = false;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_values() {
        let text = b"{\"a\":1,\"b\":{\"c\":2,\"d\":{\"e\":3}}}\nno json\n\n{\"a\":1,\"x\":[1,2]}\n";
        let all = Names::new(Wanted::All, &[]).read(text, false);
        assert_eq!(all.found, ["a", "b.c", "b.d.e", "x"]);
        assert_eq!((all.records, all.is_everywhere("a"), all.is_everywhere("x")), (2, true, false));
        let declared = Names::new(Wanted::Declared(&["b.c", "a", "x.1"]), &[]).read(text, false);
        assert_eq!(declared.found, ["a", "b.c", "b.d", "x.0", "x.1"]);
    }

    #[test]
    fn lists_of_events_are_found() {
        let lists = |text: &str| Names::new(Wanted::All, &[]).read(text.as_bytes(), false).likely_lists();
        assert_eq!(lists("{\"a\":1,\"s\":[{\"t\":1},{\"t\":2}],\"tags\":[\"x\"]}"), ["s"]);
        assert_eq!(
            lists(
                "{\"metric\":{},\"values\":[1,2],\"timestamps\":[3,4]}\n{\"metric\":{},\"values\":[1],\"timestamps\":[3]}"
            ),
            ["timestamps", "values"]
        );
        assert_eq!(lists("{\"tags\":[\"x\",\"y\"]}"), [""; 0]);
        let outer = ["r".to_owned()];
        let inner = Names::new(Wanted::All, &outer).read(b"{\"r\":[{\"s\":[{\"v\":1}]},{\"s\":[]}]}", false);
        assert_eq!((inner.likely_lists(), inner.has_list("r")), (vec!["r.s".to_owned()], true));
        assert!(is_otel(b"\n{\"resourceMetrics\":[]}\n") && !is_otel(b"{\"a\":1}") && !is_otel(b""));
    }
}
