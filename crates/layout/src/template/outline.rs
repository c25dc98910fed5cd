//! The parts of a template with their places, for tools that judge a layout.

use std::ops::Range;

use crate::template::form::Form;
use crate::template::parse::{FieldPiece, Piece, Template};
use crate::template::time_format::TimeFormat;

/// A part of a template: a literal, or a column in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplatePart {
    /// Its bytes in the template: for a field from brace to brace.
    pub span: Range<usize>,
    /// What the part prints.
    pub content: PartContent,
}

/// What a part of a template prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartContent {
    /// Text, without the doubling of braces.
    Literal(String),
    /// The value of a column.
    Field {
        /// The name of the column.
        name: String,
        /// The form in which it is printed.
        form: FieldForm,
    },
}

/// The form in which a template prints a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldForm {
    /// Its text, as in cells.
    Text,
    /// Zero-padded to this many digits.
    ZeroPad(u8),
    /// Space-padded to this many bytes.
    SpacePad(u16),
    /// Parts of a time, by a strftime format.
    Time(TimeShape),
    /// Seconds, milliseconds or microseconds since 1970, zero-padded.
    Epoch,
    /// i64 max minus milliseconds since 1970: newest first.
    MsReversed,
    /// Its text in reversed order.
    Reversed,
    /// The labels of a domain name in reversed order.
    Domain,
    /// Its text, percent-encoded.
    Percent,
    /// Eight bytes, big-endian.
    BigEndian,
    /// The bytes that its hexadecimal digits name.
    Hex,
    /// A hash, which does not read back.
    Hash,
    /// A salt from 1 to this number, by the hash of its text.
    Salt(u32),
}

/// The parts of a time that a strftime format prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeShape {
    /// Whether the year is among the parts.
    pub year: bool,
    /// The smallest step in microseconds that changes the output; `None` if it is not known.
    pub finest: Option<i64>,
    /// The number of bytes of the output; `None` if it varies.
    pub width: Option<usize>,
}

/// The parts of `template`, from left to right; none if it is not a template. Adjacent literals are one part.
pub fn template_parts(template: &str) -> Vec<TemplatePart> {
    let Ok(parsed) = Template::parse(template) else { return Vec::new() };
    let fields: Vec<Range<usize>> = parsed
        .pieces
        .iter()
        .filter_map(|piece| if let Piece::Field(field) = piece { Some(field.span.clone()) } else { None })
        .collect();

    let (mut parts, mut seen, mut end) = (Vec::with_capacity(parsed.pieces.len()), 0, 0);
    for piece in parsed.pieces {
        let (span, content) = match piece {
            // The brace of a field stands right behind its literal.
            Piece::Literal(text) => {
                let next = fields.get(seen).map_or(template.len(), |field| field.start);
                (end..next, PartContent::Literal(text))
            }
            Piece::Field(FieldPiece { name, form, span, .. }) => {
                seen += 1;
                (span, PartContent::Field { name, form: form_of(&form) })
            }
        };
        end = span.end;
        parts.push(TemplatePart { span, content });
    }
    parts
}

fn form_of(form: &Form) -> FieldForm {
    match form {
        Form::Text => FieldForm::Text,
        Form::ZeroPad(width) => FieldForm::ZeroPad(*width),
        Form::SpacePad(width) => FieldForm::SpacePad(*width),
        Form::Time(format) => FieldForm::Time(shape_of(format)),
        Form::Epoch(_) => FieldForm::Epoch,
        Form::MsReversed => FieldForm::MsReversed,
        Form::Reversed => FieldForm::Reversed,
        Form::Domain => FieldForm::Domain,
        Form::BigEndian => FieldForm::BigEndian,
        Form::Hash => FieldForm::Hash,
        Form::Hex => FieldForm::Hex,
        Form::Salt(count) => FieldForm::Salt(*count),
        Form::Percent(_) => FieldForm::Percent,
    }
}

fn shape_of(format: &TimeFormat) -> TimeShape {
    TimeShape { year: format.prints_year(), finest: format.finest(), width: format.width() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_their_places() {
        let template = "{{x}}#{meter:010}#{ts:%Y%m%d}{salt(ts, 3)}end";
        let parts = template_parts(template);
        let shown: Vec<&str> = parts.iter().map(|part| &template[part.span.clone()]).collect();
        assert_eq!(shown, ["{{x}}#", "{meter:010}", "#", "{ts:%Y%m%d}", "{salt(ts, 3)}", "end"]);
        assert_eq!(parts[0].content, PartContent::Literal("{x}#".to_owned()));
        let field = |name: &str, form| PartContent::Field { name: name.to_owned(), form };
        let day = TimeShape { year: true, finest: Some(crate::time::DAY), width: Some(8) };
        assert_eq!(parts[1].content, field("meter", FieldForm::ZeroPad(10)));
        assert_eq!(parts[3].content, field("ts", FieldForm::Time(day)));
        assert_eq!(parts[4].content, field("ts", FieldForm::Salt(3)));
        assert!(template_parts("{").is_empty());
    }

    #[test]
    fn years_of_formats() {
        for (format, year) in [
            ("%Y", true),
            ("%G-W%V", true),
            ("%y%m", true),
            ("%s", true),
            ("%m%d", false),
            ("%H%M", false),
            ("%a", false),
            ("%-d", false),
        ] {
            let parts = template_parts(&format!("{{ts:{format}}}"));
            let PartContent::Field { form: FieldForm::Time(shape), .. } = &parts[0].content else {
                panic!("{parts:?}")
            };
            assert_eq!(shape.year, year, "{format}");
        }
    }
}
