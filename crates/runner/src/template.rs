//! Name templates with days, hours and months.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::ops::Range;

use chrono::format::{Item, StrftimeItems};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use thiserror::Error;

/// A placeholder for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// `{day}`, or `{day:%Y%m%d}`.
    Day,
    /// `{month}`.
    Month,
    /// `{hour}`.
    Hour,
}

impl Word {
    const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Hour];

    fn open(self) -> &'static str {
        match self {
            Self::Day => "{day",
            Self::Month => "{month",
            Self::Hour => "{hour",
        }
    }

    /// Its default strftime format.
    fn usual(self) -> &'static str {
        match self {
            Self::Day => "%Y-%m-%d",
            Self::Month => "%Y-%m",
            Self::Hour => "%Y-%m-%dT%H",
        }
    }
}

/// A text with time placeholders: `SENSOR_{day:%Y%m%d}`; `{day}` alone is `{day:%Y-%m-%d}`. Other braces are literal,
/// for globs.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Literal(String),
    Time(Word, Vec<Item<'static>>),
}

/// Why a text is not a [`TimeTemplate`]. Ranges are byte ranges of the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeTemplateError {
    /// A placeholder without its `}`.
    #[error("`{word}` is not closed: write `{word}:%Y%m%d}}`")]
    Open {
        /// The placeholder with its brace.
        word: &'static str,
        /// The rest of the text.
        at: Range<usize>,
    },
    /// A format that strftime does not know, or that needs a finer time than the placeholder has.
    #[error("`{format}` is not the strftime format of a date: write for example `%Y%m%d`")]
    Format {
        /// The format as written.
        format: String,
        /// Its byte range.
        at: Range<usize>,
    },
}

impl TimeTemplateError {
    /// The byte range that is wrong.
    pub fn at(&self) -> Range<usize> {
        match self {
            Self::Open { at, .. } | Self::Format { at, .. } => at.clone(),
        }
    }
}

impl TimeTemplate {
    /// Parses a template with the placeholders `words`.
    ///
    /// # Errors
    /// If a placeholder is not closed, or its format is invalid.
    pub fn parse(text: &str, words: &[Word]) -> Result<Self, TimeTemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some((word, after)) = placeholder(rest, words) else {
                literal.extend(rest.chars().next());
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            let Some(close) = after.find('}') else {
                return Err(TimeTemplateError::Open { word: word.open(), at: at..text.len() });
            };
            let body = after.get(..close).unwrap_or_default();
            let start = text.len() - after.len();
            let (format, from) = body.strip_prefix(':').map_or((word.usual(), start), |format| (format, start + 1));
            let items = items(word, format)
                .ok_or_else(|| TimeTemplateError::Format { format: format.to_owned(), at: from..start + close })?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Time(word, items));
            at = start + close + 1;
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it contains `word`.
    pub fn has(&self, word: Word) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Time(found, _) if *found == word))
    }

    /// Whether it contains any placeholder.
    pub fn has_time(&self) -> bool {
        Word::ALL.iter().any(|word| self.has(*word))
    }

    /// The text for `day`.
    pub fn render(&self, day: NaiveDate) -> String {
        self.render_at(day.and_time(NaiveTime::MIN))
    }

    /// The text for the period that starts at `time`.
    pub fn render_at(&self, time: NaiveDateTime) -> String {
        let mut out = String::with_capacity(self.text.len() + 8);
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => out.push_str(text),
                // `parse` rendered every item once.
                TemplatePart::Time(_, items) => drop(write!(out, "{}", time.format_with_items(items.iter()))),
            }
        }
        out
    }
}

/// Most distinct values of a piece (see [`TimeTemplate::pieces`]); with more it is taken for any text.
const MOST_VALUES: usize = 512;

impl TimeTemplate {
    /// The text before the first placeholder, in lower case.
    pub(crate) fn literal_prefix(&self) -> String {
        match self.parts.first() {
            Some(TemplatePart::Literal(text)) => text.to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    /// The possible values of each piece of the name at `times`, in lower case; `None` for a piece with too many.
    /// Each field of a format such as `%Y%m%d` is a piece.
    pub(crate) fn pieces(&self, times: &[NaiveDateTime]) -> Vec<Option<BTreeSet<String>>> {
        let mut pieces = Vec::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => pieces.push(Some(BTreeSet::from([text.to_ascii_lowercase()]))),
                TemplatePart::Time(_, items) => pieces.extend(items.iter().map(|item| values(item, times))),
            }
        }
        pieces
    }
}

/// The values of an item at `times`.
fn values(item: &Item<'static>, times: &[NaiveDateTime]) -> Option<BTreeSet<String>> {
    let mut values = BTreeSet::new();
    let mut text = String::new();
    for time in times {
        text.clear();
        // `parse` rendered every item once.
        let _ = write!(text, "{}", time.format_with_items(std::iter::once(item)));
        if !values.contains(text.as_str()) {
            values.insert(text.to_ascii_lowercase());
        }
        if values.len() > MOST_VALUES {
            return None;
        }
    }
    Some(values)
}

impl fmt::Display for TimeTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits a placeholder off the start of `rest`.
fn placeholder<'a>(rest: &'a str, words: &[Word]) -> Option<(Word, &'a str)> {
    words.iter().find_map(|word| {
        let after = rest.strip_prefix(word.open())?;
        let whole = after.is_empty() || after.starts_with([':', '}']);
        whole.then_some((*word, after))
    })
}

fn items(word: Word, format: &str) -> Option<Vec<Item<'static>>> {
    let items = StrftimeItems::new(format).parse_to_owned().ok()?;
    let mut probe = String::new();
    let date = NaiveDate::default();
    let shown = match word {
        Word::Hour => write!(probe, "{}", date.and_time(NaiveTime::MIN).format_with_items(items.iter())),
        Word::Day | Word::Month => write!(probe, "{}", date.format_with_items(items.iter())),
    };
    (shown.is_ok() && !probe.is_empty()).then_some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TimeTemplate, TimeTemplateError> {
        TimeTemplate::parse(text, &[Word::Day])
    }

    #[test]
    fn names() {
        let day = "2024-02-29".parse().unwrap();
        assert_eq!(parse("SENSOR_{day:%Y%m%d}").unwrap().render(day), "SENSOR_20240229");
        assert_eq!(parse("x-{day}").unwrap().render(day), "x-2024-02-29");
        assert_eq!(parse("é/{a,b}/{daytime}").unwrap().render(day), "é/{a,b}/{daytime}");
        assert_eq!(parse("{day:%G-W%V}/{day:%j}.csv").unwrap().render(day), "2024-W09/060.csv");
        assert!(!parse("plain").unwrap().has_time());
        assert_eq!(parse("é{day:%H}").unwrap_err().at(), 7..9);
        assert_eq!(parse("a{day:%Y").unwrap_err(), TimeTemplateError::Open { word: "{day", at: 1..8 });
        assert!(parse("a{day:%Q}").is_err());
        assert!(parse("a{day:}").is_err());
    }

    #[test]
    fn hours_and_months() {
        let time: NaiveDateTime = "2024-02-29T07:00:00".parse().unwrap();
        let hive = TimeTemplate::parse("H/dt={day}/hour={hour:%H}", &[Word::Day, Word::Hour]).unwrap();
        assert_eq!(hive.render_at(time), "H/dt=2024-02-29/hour=07");
        assert!(hive.has(Word::Hour) && !hive.has(Word::Month));
        assert_eq!(TimeTemplate::parse("M_{month}", &[Word::Month]).unwrap().render_at(time), "M_2024-02");
        assert_eq!(TimeTemplate::parse("M_{month}", &[Word::Day]).unwrap().render_at(time), "M_{month}");
        assert!(TimeTemplate::parse("M_{month:%H}", &[Word::Month]).is_err());
    }
}
