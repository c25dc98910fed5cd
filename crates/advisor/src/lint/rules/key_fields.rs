//! The columns of a row key, each by itself.

use std::collections::BTreeSet;

use tidetable_layout::FieldType;
use tidetable_layout::outline::FieldForm;

use crate::facts::{FieldFacts, RejectKind, shown};
use crate::lint::found::Found;
use crate::lint::rule::{Check, DESIGN, Needs, QUOTAS, Rule, Severity, TIME_SERIES};
use crate::lint::subject::{KeyField, TableSubject};
use crate::lint::{forms, words};

pub(super) static HASH: Rule = Rule {
    id: "K3",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "a hash in the row key",
    reason: "A hash hides what a key is about: related rows are no range any more, and nobody can read the key of a busy row",
    source: DESIGN,
    check: Check::Table(hash),
};

fn hash(table: &TableSubject<'_>) -> Vec<Found> {
    let hashed = table.fields().iter().filter(|field| matches!(field.form, FieldForm::Hash));
    let found = hashed.map(|field| {
        let text = match field.kind {
            FieldType::UInt64 | FieldType::Int64 => format!("{{{}:reversed}}", field.name),
            _ => format!("{{{}}}", field.name),
        };
        let message = format!("`{}` is hashed: it does not read back, and its rows lie apart", field.name);
        Found::new(Severity::Warn, table.key_at(field.span.clone()), message).edit(table.with_field(field, &text))
    });
    found.collect()
}

pub(super) static UNPADDED: Rule = Rule {
    id: "K4",
    severity: Severity::Error,
    needs: Needs::Job,
    title: "a number of varying width in the row key; a warning if another column follows it, until data shows other widths",
    reason: "Keys are compared byte by byte, so 20 comes before 3; with leading zeros the order of keys is that of the numbers",
    source: DESIGN,
    check: Check::Table(unpadded),
};

fn unpadded(table: &TableSubject<'_>) -> Vec<Found> {
    let fields = table.fields();
    let plain = fields.iter().filter(|field| {
        let is_decimal = matches!(field.kind, FieldType::Float64 | FieldType::Decimal { .. });
        matches!(field.form, FieldForm::Text) && (field.is_integer() || is_decimal)
    });

    let found = plain.map(|field| {
        let data = table.facts.and_then(|facts| facts.field(&field.name));
        let widths: BTreeSet<usize> = data.iter().flat_map(|data| &data.values).map(|value| value.text.len()).collect();
        let is_last = fields.last() == Some(field);
        let severity = if is_last || widths.len() > 1 { Severity::Error } else { Severity::Warn };

        let digits = (widths.last().copied().unwrap_or_default() + 3).clamp(10, 19);
        let edit = field.is_integer().then(|| table.with_field(field, &format!("{{{}:0{digits}}}", field.name)));
        let message = unpadded_message(field, &widths);
        let found = Found::new(severity, table.key_at(field.span.clone()), message).edit(edit.flatten());
        found.keys(data.map(out_of_order).unwrap_or_default())
    });
    found.collect()
}

/// What is wrong with a number that is not padded; `widths` are those of its values in bytes, none without data.
fn unpadded_message(field: &KeyField, widths: &BTreeSet<usize>) -> String {
    let name = &field.name;
    match (widths.first(), widths.last()) {
        (Some(least), Some(most)) if least < most => {
            format!("the values of `{name}` are {least} to {most} wide, so keys do not sort as numbers do")
        }
        (Some(width), _) => {
            format!("the values of `{name}` are {width} wide so far: the first that is wider sorts among the others")
        }
        (None, _) if field.is_integer() => {
            format!("`{name}` is not padded, so keys do not sort as its numbers do")
        }
        (None, _) => {
            format!("`{name}` has a fraction, so keys do not sort as its numbers do: derive an integer and pad it")
        }
    }
}

/// Two values whose order as text is not that of the numbers, if there are.
fn out_of_order(data: &FieldFacts) -> Vec<String> {
    let values = data.values.iter().map(|value| (value.text.as_str(), value.text.parse::<f64>().unwrap_or_default()));
    let mut values: Vec<(&str, f64)> = values.collect();
    values.sort_unstable_by_key(|(text, _)| *text);
    let pair = values.windows(2).find(|pair| matches!(pair, [(_, one), (_, next)] if one > next));
    pair.unwrap_or_default().iter().map(|(text, _)| (*text).to_owned()).collect()
}

pub(super) static KEY_LENGTH: Rule = Rule {
    id: "K8",
    severity: Severity::Error,
    needs: Needs::Job,
    title: "a row key over 100 bytes; an error over 4,096, the limit",
    reason: "The key is stored and sent with every cell of its row, and longer ones take memory and time of every read; over 4 KiB \
             a write is refused",
    source: QUOTAS,
    check: Check::Table(key_length),
};

fn key_length(table: &TableSubject<'_>) -> Vec<Found> {
    let (least, bound) = (table.least_key(), table.prices.limits.key);
    let measured = table.facts.map(|facts| facts.longest_key.as_slice()).filter(|key| key.len() > least);
    let rejects = table.facts.iter().flat_map(|facts| &facts.rejects);
    if let Some(reject) = rejects.filter(|reject| reject.kind == RejectKind::Key).max_by_key(|reject| reject.rows) {
        let message = format!("{} rows are rejected: their key has over {} bytes", reject.rows, bound.limit);
        return vec![Found::new(Severity::Error, table.whole_key(), message).measure(reject.rows as f64, 0.0, "rows")];
    }

    let length = measured.map_or(least, <[u8]>::len);
    let Some(limit) = bound.passed_by(length as u64) else { return Vec::new() };
    let severity = if limit == bound.limit { Severity::Error } else { Severity::Warn };
    let message = match measured {
        Some(_) => format!("the longest row key has {length} bytes"),
        None => format!("every row key has {length} bytes or more"),
    };
    let keys = measured.map(shown);
    vec![Found::new(severity, table.whole_key(), message).measure(length as f64, limit as f64, "bytes").keys(keys)]
}

pub(super) static NO_YEAR: Rule = Rule {
    id: "K12",
    severity: Severity::Error,
    needs: Needs::Job,
    title: "a bucket of time without its year; a warning where only the name of a column says that it is one",
    reason: "Such a bucket comes again every year: its row never ends, and its key cannot be turned back into a date",
    source: TIME_SERIES,
    check: Check::Table(no_year),
};

fn no_year(table: &TableSubject<'_>) -> Vec<Found> {
    let fields = table.fields();
    let dated = fields.iter().any(|field| field.name == table.time() && names_year(field));

    let mut found = Vec::new();
    for field in fields {
        let at = table.key_at(field.span.clone());
        if let FieldForm::Time(_) = field.form {
            if fields.iter().any(|other| other.name == field.name && names_year(other)) {
                continue;
            }
            let written = table.written(field);
            let edit = table.with_field(field, &written.replacen(":%", ":%Y%", 1));
            let message = format!("`{written}` comes again: the row of one time is the row of another");
            found.push(Found::new(Severity::Error, at, message).edit(edit));
        } else if let Some((unit, format)) = words::calendar_unit(&field.name).filter(|_| !dated && !field.is_time()) {
            let values = table.facts.and_then(|facts| facts.field(&field.name)).map(|data| data.values.as_slice());
            if values.is_some_and(|values| values.iter().all(|value| holds_year(&value.text))) {
                continue;
            }
            let severity = if values.is_some() { Severity::Error } else { Severity::Warn };
            let edit = table.with_field(field, &format!("{{{}:{format}}}", table.time()));
            let message = format!("`{}` is a {unit} of a year that the key does not name, and comes again", field.name);
            let values = values.unwrap_or_default().iter().filter(|value| !holds_year(&value.text));
            let examples = values.map(|value| value.text.clone());
            found.push(Found::new(severity, at, message).edit(edit).keys(examples));
        }
    }
    found
}

/// Whether a field of the key tells the year of a time.
fn names_year(field: &KeyField) -> bool {
    match &field.form {
        FieldForm::Time(shape) => shape.year,
        _ => field.is_time(),
    }
}

/// Whether a text has four digits that can be a year.
fn holds_year(text: &str) -> bool {
    let digits: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() >= 4).collect();
    digits.iter().any(|run| {
        run.get(..4).and_then(|year| year.parse::<u32>().ok()).is_some_and(|year| (1900..=2199).contains(&year))
    })
}

pub(super) static PERSONAL: Rule = Rule {
    id: "K13",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "personal data in the row key: by the name of a column, and with data by mail, IP, card and IBAN forms",
    reason: "Row keys turn up in logs, metrics and key heatmaps, which more people see than the table",
    source: DESIGN,
    check: Check::Table(personal),
};

fn personal(table: &TableSubject<'_>) -> Vec<Found> {
    let readable = table.fields().iter().filter(|field| !matches!(field.form, FieldForm::Hash | FieldForm::Salt(_)));
    let found = readable.filter_map(|field| {
        let data = table.facts.and_then(|facts| facts.field(&field.name));
        let (what, examples) = match data.and_then(personal_values) {
            Some((what, example)) => (what, vec![example]),
            None => (words::personal(&field.name)?, Vec::new()),
        };
        let message = format!("`{}` seems to be {what}", field.name);
        Some(Found::new(Severity::Warn, table.key_at(field.span.clone()), message).keys(examples))
    });
    found.collect()
}

/// What nine of ten values are by their form, and one of them, masked: findings are read by others than the table.
fn personal_values(data: &FieldFacts) -> Option<(&'static str, String)> {
    let first = data.values.iter().find_map(|value| forms::personal(&value.text))?;
    let same: Vec<&str> = data
        .values
        .iter()
        .map(|value| value.text.as_str())
        .filter(|text| forms::personal(text) == Some(first))
        .collect();
    // One in ten numbers of 16 digits has the check digit of a card.
    let most = same.len() >= 3 && same.len() * 10 >= data.values.len() * 9;
    most.then(|| (first, same.first().map(|text| forms::masked(text)).unwrap_or_default()))
}

pub(super) static RAW_BYTES: Rule = Rule {
    id: "K17",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "raw bytes in the row key",
    reason: "Keys of readable text show in tools and logs what a row is about; raw bytes show nothing, and may hold the delimiter",
    source: DESIGN,
    check: Check::Table(raw_bytes),
};

fn raw_bytes(table: &TableSubject<'_>) -> Vec<Found> {
    let raw = table.fields().iter().filter(|field| matches!(field.form, FieldForm::BigEndian));
    let found = raw.map(|field| {
        let form = match field.kind {
            FieldType::UInt64 => "020",
            FieldType::Int64 => "019",
            _ => "us",
        };
        let message = format!("`{}` is written as eight bytes that nobody can read", field.name);
        let edit = table.with_field(field, &format!("{{{}:{form}}}", field.name));
        Found::new(Severity::Warn, table.key_at(field.span.clone()), message).edit(edit)
    });
    found.collect()
}
