//! The template language: text with fields in braces, as in `{meter:010}#{ts:%Y%m%d}`.

use std::ops::Range;

use crate::error::Problem;
use crate::template::form::{Epoch, Form};
use crate::template::percent::Escapes;
use crate::template::time_format::TimeFormat;

/// A parsed template whose names are not bound to columns yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

/// A piece of a template, from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    Field(FieldPiece),
}

/// A field of a template: what stands between two braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldPiece {
    pub(crate) name: String,
    pub(crate) form: Form,
    /// Its bytes in the template, from brace to brace.
    pub(crate) span: Range<usize>,
    /// The bytes of its name in the template.
    pub(crate) name_span: Range<usize>,
}

/// The names of forms that are words, for suggestions.
const WORDS: [&str; 10] = ["s", "ms", "us", "ms-reversed", "reversed", "domain", "percent", "be", "hash", "hex"];
/// The widest space padding in bytes: a key has no more.
const MAX_PAD: usize = 4096;
/// The widest zero padding: the digits of `u64::MAX`.
const MAX_ZERO_PAD: usize = 20;

impl Template {
    /// Parses `text`; returns all errors, each with its byte range.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<(Range<usize>, Problem)>> {
        let mut pieces = Vec::new();
        let mut errors = Vec::new();
        let mut at = 0;

        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with("{{") || rest.starts_with("}}") {
                push_literal(&mut pieces, &rest[..1]);
                at += 2;
            } else if rest.starts_with('}') {
                errors.push((at..at + 1, Problem::Unopened));
                at += 1;
            } else if rest.starts_with('{') {
                let Some(length) = rest.find('}') else {
                    errors.push((at..text.len(), Problem::Unclosed));
                    break;
                };
                match parse_field(&rest[1..length], at + 1) {
                    Ok(field) => pieces.push(Piece::Field(field)),
                    Err(error) => errors.push(error),
                }
                at += length + 1;
            } else {
                let length = rest.find(['{', '}']).unwrap_or(rest.len());
                push_literal(&mut pieces, &rest[..length]);
                at += length;
            }
        }

        if errors.is_empty() { Ok(Self { pieces }) } else { Err(errors) }
    }

    /// The template with the fields `name` replaced: by text, or by another field's name.
    pub(crate) fn replace(mut self, name: &str, with: &Replacement<'_>) -> Self {
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces.drain(..) {
            match (piece, with) {
                (Piece::Field(field), Replacement::Text(text)) if field.name == name => push_literal(&mut pieces, text),
                (Piece::Field(mut field), Replacement::Field(other)) if field.name == name => {
                    field.name = (*other).to_owned();
                    pieces.push(Piece::Field(field));
                }
                (Piece::Literal(text), _) => push_literal(&mut pieces, &text),
                (piece, _) => pieces.push(piece),
            }
        }
        Self { pieces }
    }
}

/// What replaces `{column}` or `{value}` under `each`.
pub(crate) enum Replacement<'a> {
    Text(&'a str),
    Field(&'a str),
}

/// Appends a literal; neighbours become one.
fn push_literal(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Literal(last)) => last.push_str(text),
        _ => pieces.push(Piece::Literal(text.to_owned())),
    }
}

/// Parses what stands between two braces, which begins at byte `at` of the template.
fn parse_field(inside: &str, at: usize) -> Result<FieldPiece, (Range<usize>, Problem)> {
    let span = at - 1..at + inside.len() + 1;
    if let Some(arguments) = inside.strip_prefix("salt(") {
        return parse_salt(arguments, at + 5, span.clone()).ok_or((span, Problem::BadSalt));
    }

    let (name, form) = match inside.split_once(':') {
        None => (inside, None),
        Some((name, form)) => (name, Some(form)),
    };
    if name.trim().is_empty() {
        return Err((span, Problem::NoName));
    }

    let lead = name.len() - name.trim_start().len();
    let name_span = at + lead..at + lead + name.trim().len();
    let form = match form {
        None => Form::Text,
        Some(text) => {
            let start = at + name.len() + 1;
            parse_form(text).map_err(|(range, problem)| (start + range.start..start + range.end, problem))?
        }
    };
    Ok(FieldPiece { name: name.trim().to_owned(), form, span, name_span })
}

/// Parses the arguments of `salt(column, n)`; `None` if they are malformed.
fn parse_salt(arguments: &str, at: usize, span: Range<usize>) -> Option<FieldPiece> {
    let (name, count) = arguments.strip_suffix(')')?.split_once(',')?;
    let count: u32 = count.trim().parse().ok()?;
    let trimmed = name.trim();
    if trimmed.is_empty() || !(2..=1_000_000).contains(&count) {
        return None;
    }
    let start = at + (name.len() - name.trim_start().len());
    let name_span = start..start + trimmed.len();
    Some(FieldPiece { name: trimmed.to_owned(), form: Form::Salt(count), span, name_span })
}

/// Parses what follows the colon of a field. An error has its byte range in `text`.
fn parse_form(text: &str) -> Result<Form, (Range<usize>, Problem)> {
    let all = 0..text.len();
    if text.starts_with('%') {
        return TimeFormat::compile(text).map(Form::Time);
    }

    if let Some(width) = text.strip_prefix('<').and_then(|digits| digits.parse::<usize>().ok()) {
        return match u16::try_from(width) {
            Ok(width @ 1..) if usize::from(width) <= MAX_PAD => Ok(Form::SpacePad(width)),
            _ => Err((all, Problem::BadWidth { most: MAX_PAD })),
        };
    }
    if let Some(width) = text.strip_prefix('0').and_then(|digits| digits.parse::<usize>().ok()) {
        return match u8::try_from(width) {
            Ok(width @ 1..) if usize::from(width) <= MAX_ZERO_PAD => Ok(Form::ZeroPad(width)),
            _ => Err((all, Problem::BadWidth { most: MAX_ZERO_PAD })),
        };
    }

    Ok(match text {
        "s" => Form::Epoch(Epoch::Seconds),
        "ms" => Form::Epoch(Epoch::Millis),
        "us" => Form::Epoch(Epoch::Micros),
        "ms-reversed" => Form::MsReversed,
        "reversed" => Form::Reversed,
        "domain" => Form::Domain,
        "percent" => Form::Percent(Escapes::default()),
        "be" => Form::BigEndian,
        "hash" => Form::Hash,
        "hex" => Form::Hex,
        _ => {
            let suggestion = closest(text, WORDS.into_iter());
            return Err((all, Problem::UnknownForm { form: text.to_owned(), suggestion }));
        }
    })
}

/// The candidate that `name` is most likely a typo of, if any is close.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let lower = name.to_lowercase();
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count().min(name.chars().count()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}
