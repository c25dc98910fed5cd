//! Printing templates, and splitting printed bytes into their segments.

use crate::error::RejectReason;
use crate::scalar::ScalarRef;
use crate::template::segment::Segment;
use crate::time::calendar::Calendar;

/// Prints a template to `out`, with the values that `get` returns by field. An error names the field at fault and leaves partial output.
pub(crate) fn write_segments<'a>(
    segments: &[Segment],
    get: impl Fn(usize) -> Option<ScalarRef<'a>>,
    calendar: &mut Calendar,
    out: &mut Vec<u8>,
) -> Result<(), (usize, RejectReason)> {
    for (at, segment) in segments.iter().enumerate() {
        match segment {
            Segment::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Segment::Field(field) => {
                let scalar = get(field.field).ok_or((field.field, RejectReason::Null))?;
                let start = out.len();
                field.write(scalar, calendar, out).map_err(|reason| (field.field, reason))?;

                if field.width().is_none()
                    && let Some(Segment::Literal(literal)) = segments.get(at + 1)
                {
                    check_delimiter(out, start, literal).map_err(|reason| (field.field, reason))?;
                }
            }
        }
    }
    Ok(())
}

/// Checks that the value at `start` of `out` does not contain the literal that delimits it.
fn check_delimiter(out: &mut Vec<u8>, start: usize, literal: &str) -> Result<(), RejectReason> {
    let end = out.len();
    out.extend_from_slice(literal.as_bytes());
    let found = out.get(start..).and_then(|rest| find(rest, literal.as_bytes()));
    out.truncate(end);
    if found == Some(end - start) { Ok(()) } else { Err(RejectReason::Delimiter { literal: literal.to_owned() }) }
}

/// Offset of the first `needle`, which is not empty, in `haystack`.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    match needle {
        [byte] => haystack.iter().position(|found| found == byte),
        _ => haystack.windows(needle.len().max(1)).position(|window| window == needle),
    }
}

/// Whether two short byte strings are equal, without a call for single bytes.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([one], [other]) => one == other,
        _ => one == other,
    }
}

/// Splits `bytes` into `out`: the bytes that each segment printed. False if the template cannot have printed them.
pub(crate) fn split<'b>(segments: &[Segment], bytes: &'b [u8], out: &mut Vec<&'b [u8]>) -> bool {
    out.clear();
    let mut rest = bytes;
    for (at, segment) in segments.iter().enumerate() {
        let length = match (segment.width(), segments.get(at + 1)) {
            (Some(width), _) => Some(width),
            (None, None) => Some(rest.len()),
            (None, Some(Segment::Literal(literal))) => find(rest, literal.as_bytes()),
            // Compilation guarantees that all following segments have a fixed width.
            (None, Some(_)) => {
                let after: Option<usize> = segments.iter().skip(at + 1).map(Segment::width).sum();
                after.and_then(|after| rest.len().checked_sub(after))
            }
        };

        let Some((span, after)) = length.and_then(|length| rest.split_at_checked(length)) else { return false };
        if let Segment::Literal(text) = segment
            && !is_equal(span, text.as_bytes())
        {
            return false;
        }
        out.push(span);
        rest = after;
    }
    rest.is_empty()
}
