//! Typed access to a parsed TOML table. Unknown keys, wrong types and unsupported values are noted with
//! their byte range and reading goes on, so that one pass finds every mistake.

use std::ffi::OsStr;
use std::ops::Range;

use serde_spanned::Spanned;
use tidetable_source::Location;
use toml::de::{DeArray, DeTable, DeValue};

use crate::file::keys::{Key, Section, ValueShape};
use crate::file::places::TextPlace;
use crate::file::problem::{Mistake, Problem};
use crate::file::words::nearest;

/// The text of a file and the problems found in it so far.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, problems: Vec::new() }
    }

    pub(crate) fn refuse(&mut self, at: Range<usize>, mistake: Mistake) {
        self.problems.push(Problem::new(mistake, at));
    }

    /// The number of problems: a caller compares two counts to see whether a section was valid.
    pub(crate) fn count(&self) -> usize {
        self.problems.len()
    }

    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.at().start);
        self.problems
    }

    /// Parses the file; `None` after syntax errors, because what follows one is guesswork.
    pub(crate) fn parse(&mut self) -> Option<DeTable<'a>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let at = error.span().unwrap_or(0..0);
            self.refuse(at, Mistake::Syntax { message: error.message().to_owned() });
        }
        errors.is_empty().then(|| table.into_inner())
    }

    /// The path of `use_of`, which is on this machine.
    pub(crate) fn path(&mut self, key: &'static str, text: &Text<'_>, use_of: &'static str) -> Option<String> {
        match Location::path_of(OsStr::new(text.value), use_of) {
            Ok(path) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                self.refuse(text.at.clone(), Mistake::Place { key, error });
                None
            }
        }
    }

    /// The string `value`, which stands at the byte range `at` of the file.
    pub(crate) fn string<'v>(&self, value: &'v str, at: Range<usize>) -> Text<'v> {
        let raw = self.text.get(at.clone()).unwrap_or_default();
        let unquoted = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find_map(|quote| Some((quote.len(), raw.strip_prefix(quote)?.strip_suffix(quote)?)));
        let inside = unquoted.and_then(|(width, inner)| {
            // TOML drops the line break right after three quotes.
            let trimmed = inner.strip_prefix("\r\n").or_else(|| inner.strip_prefix('\n')).filter(|_| width == 3);
            let body = trimmed.unwrap_or(inner);
            (body == value).then_some(at.start + width + inner.len() - body.len())
        });
        Text { value, at, inside }
    }
}

/// A string with its byte range, to underline what is wrong in it.
#[derive(Debug, Clone)]
pub(crate) struct Text<'a> {
    pub(crate) value: &'a str,
    pub(crate) at: Range<usize>,
    /// Start of its content, if no escape shifts the bytes after it.
    inside: Option<usize>,
}

impl Text<'_> {
    /// The range in the file of the bytes `part` of the string; the whole string if it has escapes.
    pub(crate) fn within(&self, part: Range<usize>) -> Range<usize> {
        self.place().within(part)
    }

    pub(crate) fn place(&self) -> TextPlace {
        TextPlace { at: self.at.clone(), inside: self.inside, length: self.value.len() }
    }

    pub(crate) fn owned(&self) -> String {
        self.value.to_owned()
    }
}

/// A user-defined name (of a source, table, ..) and its value.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: Range<usize>,
    pub(crate) value: &'a Spanned<DeValue<'a>>,
}

/// Whether `value` has the type of `key`; notes a mismatch.
fn fits(reader: &mut Reader<'_>, key: &Key, value: &Spanned<DeValue<'_>>) -> bool {
    let mut misfits = Vec::new();
    if !key.shape.fits(value.get_ref()) {
        misfits.push(value);
    } else if let Some((list, shape)) = value.get_ref().as_array().zip(key.shape.item()) {
        misfits.extend(list.iter().filter(|item| !shape.fits(item.get_ref())));
    }

    for misfit in &misfits {
        let found = misfit.get_ref().type_str();
        reader.refuse(misfit.span(), Mistake::WrongType { key: key.name.to_owned(), shape: key.shape, found });
    }
    misfits.is_empty()
}

/// A table whose keys were checked against its section.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    section: &'static Section,
    at: Range<usize>,
    /// By key; `None` for one that is already reported as wrong.
    entries: Vec<(&'static str, Option<Entry<'a>>)>,
}

#[derive(Debug, Clone)]
struct Entry<'a> {
    key_at: Range<usize>,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Fields<'a> {
    /// Checks the keys of `table`, whose name stands at `at`.
    pub(crate) fn of_table(
        reader: &mut Reader<'_>,
        section: &'static Section,
        table: &'a DeTable<'a>,
        at: Range<usize>,
    ) -> Self {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let name: &str = key.get_ref();
            let Some(known) = section.keys.iter().find(|known| known.name == name) else {
                let near = nearest(name, section.keys.iter().map(|known| known.name));
                reader.refuse(key.span(), Mistake::UnknownKey { key: name.to_owned(), section, near });
                continue;
            };
            let fits = fits(reader, known, value);
            let entry = fits.then(|| Entry { key_at: key.span(), value });
            entries.push((known.name, entry));
        }
        Self { section, at, entries }
    }

    /// Like [`Fields::of_table`], for a value that must be a table.
    pub(crate) fn of_value(
        reader: &mut Reader<'_>,
        section: &'static Section,
        value: &'a Spanned<DeValue<'a>>,
        at: Range<usize>,
    ) -> Option<Self> {
        match value.get_ref().as_table() {
            Some(table) => Some(Self::of_table(reader, section, table, at)),
            None => {
                let found = value.get_ref().type_str();
                let key = reader.text.get(at).unwrap_or(section.noun).to_owned();
                reader.refuse(value.span(), Mistake::WrongType { key, shape: ValueShape::Table, found });
                None
            }
        }
    }

    pub(crate) fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Byte range of `key`, or of the table without it.
    pub(crate) fn key_at(&self, key: &str) -> Range<usize> {
        self.entry(key).map_or_else(|| self.at(), |entry| entry.key_at.clone())
    }

    /// Byte range of the value of `key`, or of the table without it.
    pub(crate) fn value_at(&self, key: &str) -> Range<usize> {
        self.entry(key).map_or_else(|| self.at(), |entry| entry.value.span())
    }

    /// Whether the file has `key`, valid or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| *name == key)
    }

    /// Notes a missing `key`, at the name of the table.
    pub(crate) fn require(&self, reader: &mut Reader<'_>, key: &'static str) {
        if !self.has(key) {
            reader.refuse(self.at(), Mistake::MissingKey { key, section: self.section });
        }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entry(key).map(|entry| entry.value)
    }

    pub(crate) fn text(&self, reader: &Reader<'_>, key: &str) -> Option<Text<'a>> {
        let value = self.value(key)?;
        value.get_ref().as_str().map(|text| reader.string(text, value.span()))
    }

    /// The string of a required key; it may not be empty.
    pub(crate) fn required_text(&self, reader: &mut Reader<'_>, key: &'static str) -> Option<Text<'a>> {
        self.require(reader, key);
        let text = self.text(reader, key)?;
        if text.value.is_empty() {
            reader.refuse(text.at, Mistake::Empty { key });
            return None;
        }
        Some(text)
    }

    /// The strings of a list; empty without the key.
    pub(crate) fn texts(&self, reader: &Reader<'_>, key: &str) -> Vec<Text<'a>> {
        let list = self.value(key).and_then(|value| value.get_ref().as_array());
        list.into_iter()
            .flatten()
            .filter_map(|item| item.get_ref().as_str().map(|text| reader.string(text, item.span())))
            .collect()
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.value(key)?.get_ref().as_bool()
    }

    /// An integer, the greatest one for a number that is out of range; `None` without the key.
    pub(crate) fn whole(&self, key: &str) -> Option<i64> {
        let number = self.value(key)?.get_ref().as_integer()?;
        i64::from_str_radix(number.as_str(), number.radix()).ok().or(Some(i64::MAX))
    }

    pub(crate) fn list(&self, key: &str) -> Option<&'a DeArray<'a>> {
        self.value(key)?.get_ref().as_array()
    }

    /// The entries of a table of named items, in file order.
    pub(crate) fn named(&self, key: &str) -> Vec<Named<'a>> {
        let Some(table) = self.value(key).and_then(|value| value.get_ref().as_table()) else { return Vec::new() };
        let mut named: Vec<_> =
            table.iter().map(|(name, value)| Named { name: name.get_ref(), at: name.span(), value }).collect();
        named.sort_by_key(|entry| entry.at.start);
        named
    }

    /// Maps the string of `key` by `choices`; the default without the key.
    pub(crate) fn choice<T: Copy + Default>(
        &self,
        reader: &mut Reader<'_>,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> T {
        let Some(text) = self.text(reader, key) else { return T::default() };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text.value) {
            return *choice;
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let near = nearest(text.value, names.iter().copied());
        reader.refuse(text.at.clone(), Mistake::NotAChoice { key, value: text.owned(), choices: names, near });
        T::default()
    }

    fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|(name, _)| *name == key).and_then(|(_, entry)| entry.as_ref())
    }
}
