//! Templates with placeholders for days, hours and months: the names of the parts of an export. They also validate the
//! placeholders in `files` of a source, which `tidetable_source` matches with paths.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::ops::Range;

use chrono::format::{Item, StrftimeItems};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use thiserror::Error;

/// A placeholder for a time, in braces, with or without a strftime format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// A day: `{day}`, or `{day:%Y%m%d}` in another form.
    Day,
    /// A month: `{month}`, or `{month:%Y%m}` in another form.
    Month,
    /// An hour: `{hour}`, or `{hour:%Y%m%d%H}` in another form.
    Hour,
}

impl Placeholder {
    const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Hour];

    fn prefix(self) -> &'static str {
        match self {
            Self::Day => "{day",
            Self::Month => "{month",
            Self::Hour => "{hour",
        }
    }

    fn default_format(self) -> &'static str {
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
    Time(Placeholder, Vec<Item<'static>>),
}

/// Why a text is not a [`TimeTemplate`]. Ranges are byte ranges of the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeTemplateError {
    /// A placeholder without its `}`, so that its format has no end.
    #[error("`{prefix}` is not closed: write `{prefix}:FORMAT}}`")]
    Unclosed {
        /// The placeholder with its opening brace, such as `{day`.
        prefix: &'static str,
        /// The rest of the text, from the brace on.
        at: Range<usize>,
    },
    /// A format that chrono cannot parse or that renders to nothing, or a time of day in `{day}` or `{month}`. Fields finer
    /// than the placeholder, but within the sample that `parse` formats, are accepted: `%d` in `{month}`, `%M` in `{hour}`.
    #[error("`{format}` is not a strftime format for this placeholder")]
    Format {
        /// The format as written, without the placeholder.
        format: String,
        /// Byte range of the format, without the placeholder.
        at: Range<usize>,
    },
}

impl TimeTemplateError {
    /// The byte range of the text that is wrong, to underline it in an excerpt.
    pub fn at(&self) -> Range<usize> {
        match self {
            Self::Unclosed { at, .. } | Self::Format { at, .. } => at.clone(),
        }
    }
}

impl TimeTemplate {
    /// Parses a template. Placeholders other than `allowed` are literal text.
    ///
    /// # Errors
    /// If a placeholder is not closed, or its format is invalid.
    pub fn parse(text: &str, allowed: &[Placeholder]) -> Result<Self, TimeTemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some((placeholder, after)) = split_placeholder(rest, allowed) else {
                literal.extend(rest.chars().next());
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            let Some(close) = after.find('}') else {
                return Err(TimeTemplateError::Unclosed { prefix: placeholder.prefix(), at: at..text.len() });
            };

            let body = after.get(..close).unwrap_or_default();
            let start = text.len() - after.len();
            let (format, from) = match body.strip_prefix(':') {
                Some(format) => (format, start + 1),
                None => (placeholder.default_format(), start),
            };
            let items = items(placeholder, format)
                .ok_or_else(|| TimeTemplateError::Format { format: format.to_owned(), at: from..start + close })?;

            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Time(placeholder, items));
            at = start + close + 1;
        }

        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The template as written, with its placeholders.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it contains `placeholder`, in any format.
    pub fn has(&self, placeholder: Placeholder) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Time(found, _) if *found == placeholder))
    }

    /// Whether it contains any placeholder, so that the parts of a time may have names of their own.
    pub fn has_time(&self) -> bool {
        Placeholder::ALL.iter().any(|placeholder| self.has(*placeholder))
    }

    /// Renders the template for `day`; `{hour}` is its midnight.
    pub fn render(&self, day: NaiveDate) -> String {
        self.render_at(day.and_time(NaiveTime::MIN))
    }

    /// Renders the template for the period that starts at `time`, a local time.
    pub fn render_at(&self, time: NaiveDateTime) -> String {
        let mut out = String::with_capacity(self.text.len() + 8);
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => out.push_str(text),
                // Cannot fail: `parse` formatted a sample with these items.
                TemplatePart::Time(_, items) => drop(write!(out, "{}", time.format_with_items(items.iter()))),
            }
        }
        out
    }
}

/// Maximum number of values of a segment, see [`TimeTemplate::segment_values`].
const MAX_VALUES: usize = 512;

impl TimeTemplate {
    /// The text before the first placeholder, in lower case.
    pub(crate) fn literal_prefix(&self) -> String {
        match self.parts.first() {
            Some(TemplatePart::Literal(text)) => text.to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    /// The possible values of each segment of the name at `times`, by which exports are found whose part names collide.
    /// A segment is a literal, or one field of a format such as `%Y%m%d`. Values are in lower case, as some file systems
    /// ignore case. `None` stands for more than [`MAX_VALUES`] values, and matches any text.
    pub(crate) fn segment_values(&self, times: &[NaiveDateTime]) -> Vec<Option<BTreeSet<String>>> {
        let mut segments = Vec::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => segments.push(Some(BTreeSet::from([text.to_ascii_lowercase()]))),
                TemplatePart::Time(_, items) => segments.extend(items.iter().map(|item| values(item, times))),
            }
        }
        segments
    }
}

fn values(item: &Item<'static>, times: &[NaiveDateTime]) -> Option<BTreeSet<String>> {
    let mut values = BTreeSet::new();
    let mut text = String::new();
    for time in times {
        text.clear();
        // Cannot fail: `parse` formatted a sample with these items.
        let _ = write!(text, "{}", time.format_with_items(std::iter::once(item)));
        if !values.contains(text.as_str()) {
            values.insert(text.to_ascii_lowercase());
        }
        if values.len() > MAX_VALUES {
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

/// Splits one of the allowed placeholders off the start of `rest`; the rest begins with `:` or `}`, or is empty.
fn split_placeholder<'a>(rest: &'a str, allowed: &[Placeholder]) -> Option<(Placeholder, &'a str)> {
    allowed.iter().find_map(|placeholder| {
        let after = rest.strip_prefix(placeholder.prefix())?;
        let whole = after.is_empty() || after.starts_with([':', '}']);
        whole.then_some((*placeholder, after))
    })
}

/// Parses a format; `None` if a sample cannot be formatted with it, or is empty.
fn items(placeholder: Placeholder, format: &str) -> Option<Vec<Item<'static>>> {
    let items = StrftimeItems::new(format).parse_to_owned().ok()?;
    let mut sample = String::new();
    let date = NaiveDate::default();
    let shown = match placeholder {
        Placeholder::Hour => write!(sample, "{}", date.and_time(NaiveTime::MIN).format_with_items(items.iter())),
        Placeholder::Day | Placeholder::Month => write!(sample, "{}", date.format_with_items(items.iter())),
    };
    (shown.is_ok() && !sample.is_empty()).then_some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TimeTemplate, TimeTemplateError> {
        TimeTemplate::parse(text, &[Placeholder::Day])
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
        assert_eq!(parse("a{day:%Y").unwrap_err(), TimeTemplateError::Unclosed { prefix: "{day", at: 1..8 });
        assert!(parse("a{day:%Q}").is_err());
        assert!(parse("a{day:}").is_err());
    }

    #[test]
    fn messages_name_the_placeholder() {
        let error = TimeTemplate::parse("H_{hour:%H", &[Placeholder::Hour]).unwrap_err();
        assert_eq!(error.to_string(), "`{hour` is not closed: write `{hour:FORMAT}`");
        let error = TimeTemplate::parse("M_{month:%H}", &[Placeholder::Month]).unwrap_err();
        assert_eq!(error.to_string(), "`%H` is not a strftime format for this placeholder");
    }

    #[test]
    fn hours_and_months() {
        let time: NaiveDateTime = "2024-02-29T07:00:00".parse().unwrap();
        let hive = TimeTemplate::parse("H/dt={day}/hour={hour:%H}", &[Placeholder::Day, Placeholder::Hour]).unwrap();
        assert_eq!(hive.render_at(time), "H/dt=2024-02-29/hour=07");
        assert!(hive.has(Placeholder::Hour) && !hive.has(Placeholder::Month));
        assert_eq!(TimeTemplate::parse("M_{month}", &[Placeholder::Month]).unwrap().render_at(time), "M_2024-02");
        assert_eq!(TimeTemplate::parse("M_{month}", &[Placeholder::Day]).unwrap().render_at(time), "M_{month}");
        assert!(TimeTemplate::parse("M_{month:%H}", &[Placeholder::Month]).is_err());
        // Finer fields than the placeholder, at its start.
        let month = TimeTemplate::parse("M_{month:%Y%m%d}", &[Placeholder::Month]).unwrap();
        assert_eq!(month.render("2024-02-01".parse().unwrap()), "M_20240201");
        let hour = TimeTemplate::parse("H_{hour:%H%M}", &[Placeholder::Hour]).unwrap();
        assert_eq!(hour.render_at(time), "H_0700");
    }
}
