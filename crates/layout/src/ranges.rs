//! Push-down: from conditions on record fields to ranges of row keys.

use crate::bound::{FieldBound, KeyRange, Known, Scalar, known, successor};
use crate::civil::{Calendar, DAY, FIRST_TIME, LAST_TIME};
use crate::datum::Datum;
use crate::layout::Layout;
use crate::segment::{FieldSegment, Segment, write_segments};
use crate::template::Form;
use crate::value::FieldType;

/// Past this many ranges reading more keys is cheaper than telling them apart.
const MOST_RANGES: usize = 10_000;
/// A range of time is taken apart into this many steps at most, to use what is known of later fields.
const MOST_STEPS: i128 = 1_000;

impl Layout {
    /// Ranges that hold every row with a record that meets all `bounds`, sorted and disjoint; one whole range if
    /// nothing is known, none if no row can meet them.
    pub fn key_ranges(&self, bounds: &[FieldBound]) -> Vec<KeyRange> {
        let mut calendar = Calendar::default();
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let segments = &self.key.segments;
        for (at, segment) in segments.iter().enumerate() {
            let field = match segment {
                Segment::Literal(text) => {
                    prefixes.iter_mut().for_each(|prefix| prefix.extend_from_slice(text.as_bytes()));
                    continue;
                }
                Segment::Field(field) => field,
            };
            let known = self.known(bounds, field);
            let after = segments.get(at + 1);
            match self.step(field, after, known, bounds, at, &mut calendar) {
                Step::Pieces(pieces) if prefixes.len().saturating_mul(pieces.len()) <= MOST_RANGES => {
                    let extended = prefixes.iter().flat_map(|prefix| {
                        pieces.iter().map(move |piece| {
                            let mut longer = prefix.clone();
                            longer.extend_from_slice(piece);
                            longer
                        })
                    });
                    prefixes = extended.collect();
                }
                Step::Between(low, high) => {
                    let ranges = prefixes.iter().map(|prefix| KeyRange {
                        start: [prefix.as_slice(), &low].concat(),
                        end: match &high {
                            Some(high) => Some([prefix.as_slice(), high].concat()),
                            None => successor(prefix),
                        },
                    });
                    return disjoint(ranges.collect());
                }
                Step::Pieces(_) | Step::Open => {
                    return disjoint(prefixes.iter().map(|it| KeyRange::prefix(it)).collect());
                }
            }
        }
        // Whole keys.
        let ranges = prefixes.into_iter().map(|key| {
            let mut end = key.clone();
            end.push(0);
            KeyRange { start: key, end: Some(end) }
        });
        disjoint(ranges.collect())
    }

    /// What the bounds say of the field as its keys print it.
    fn known(&self, bounds: &[FieldBound], segment: &FieldSegment) -> Known {
        let Some(field) = self.fields.get(segment.field) else { return Known::Nothing };
        // Floats are equal in more ways than their text is.
        if segment.kind == FieldType::Float64 {
            return Known::Nothing;
        }
        let Some(record) = self.records.iter().find(|record| record.field == segment.field) else {
            return Known::Nothing;
        };
        let found = known(bounds, &field.name, field.kind);
        if segment.kind == FieldType::Timestamp && !matches!(found, Known::Nothing) {
            // A record's time may be coarser than what its key was made of; then the key cannot be told from it,
            // unless the key itself is what the coarser time was read from.
            let finest = segment.finest();
            let told = record.steps.iter().zip(&record.origins).all(|(step, origin)| {
                let itself = origin.is_key() && segment.resolution().is_some();
                *step <= 1 || (finest % *step == 0) || itself
            });
            if !told {
                return Known::Nothing;
            }
        }
        found
    }

    fn step(
        &self,
        field: &FieldSegment,
        after: Option<&Segment>,
        known: Known,
        bounds: &[FieldBound],
        at: usize,
        calendar: &mut Calendar,
    ) -> Step {
        match known {
            Known::In(values) => {
                let mut pieces = Vec::with_capacity(values.len());
                for value in &values {
                    match value.datum(field.kind) {
                        // A value that cannot be printed is in no key.
                        Some(datum) => pieces.extend(print(field, after, datum, calendar)),
                        None if is_number(value) && matches!(field.kind, FieldType::UInt64 | FieldType::Int64) => {}
                        None => return Step::Open,
                    }
                }
                pieces.sort_unstable();
                pieces.dedup();
                Step::Pieces(pieces)
            }
            Known::Integers(low, high) => self.between(field, low, high, bounds, at, calendar),
            Known::Texts(low, high) => texts(field, after, low, high),
            Known::Nothing => match field.form {
                Form::Salt(count) => Step::Pieces((1..=count).map(|salt| salt.to_string().into_bytes()).collect()),
                _ => Step::Open,
            },
        }
    }

    fn between(
        &self,
        field: &FieldSegment,
        low: i128,
        high: i128,
        bounds: &[FieldBound],
        at: usize,
        calendar: &mut Calendar,
    ) -> Step {
        let Some((low, high)) = printable(field, low, high) else {
            return if low > high { Step::Pieces(Vec::new()) } else { Step::Open };
        };
        if low > high {
            return Step::Pieces(Vec::new());
        }
        if let Form::Salt(count) = field.form {
            return Step::Pieces((1..=count).map(|salt| salt.to_string().into_bytes()).collect());
        }
        let descends = matches!(field.form, Form::MsReversed);
        let ascends = match &field.form {
            Form::ZeroPad(_) | Form::Epoch(_) => true,
            Form::Time(format) => format.is_ordered(),
            // Two's complement puts negative numbers last.
            Form::BigEndian => low >= 0,
            _ => false,
        };
        let later_known = self
            .key
            .segments
            .iter()
            .skip(at + 1)
            .filter_map(Segment::field)
            .any(|later| later.field != field.field && !matches!(self.known(bounds, later), Known::Nothing));
        let step = i128::from(field.finest().max(1));
        let step = if field.kind == FieldType::Date { (step / i128::from(DAY)).max(1) } else { step };
        let steps = high / step - low / step + 1;
        // Within a month or a year days differ in number, so equal steps might miss one.
        let even = step <= i128::from(7 * DAY)
            && !matches!(field.form, Form::Time(ref format) if format.resolution().is_none());
        if even && steps <= MOST_STEPS && (later_known || !(ascends || descends)) && field.kind != FieldType::Text {
            let mut pieces = Vec::new();
            let mut value = low;
            while value <= high {
                pieces.extend(integer(field.kind, value).and_then(|datum| print(field, None, datum, calendar)));
                value += step;
            }
            pieces.extend(integer(field.kind, high).and_then(|datum| print(field, None, datum, calendar)));
            pieces.sort_unstable();
            pieces.dedup();
            return Step::Pieces(pieces);
        }
        let (first, last) = match (ascends, descends) {
            (true, _) => (low, high),
            (_, true) => (high, low),
            _ => return Step::Open,
        };
        let mut end = |value| integer(field.kind, value).and_then(|datum| print(field, None, datum, calendar));
        match (end(first), end(last)) {
            // One piece lets the next field narrow further.
            (Some(first), Some(last)) if first == last => Step::Pieces(vec![first]),
            (Some(first), Some(last)) => Step::Between(first, successor(&last)),
            _ => Step::Open,
        }
    }
}

/// What a field of the key adds to the prefixes before it.
enum Step {
    /// One of these.
    Pieces(Vec<Vec<u8>>),
    /// From, to before.
    Between(Vec<u8>, Option<Vec<u8>>),
    /// Anything.
    Open,
}

fn is_number(value: &Scalar) -> bool {
    matches!(value, Scalar::UInt64(_) | Scalar::Int64(_))
}

fn integer(kind: FieldType, value: i128) -> Option<Datum<'static>> {
    Some(match kind {
        FieldType::UInt64 => Datum::UInt(u64::try_from(value).ok()?),
        FieldType::Int64 => Datum::Int(i64::try_from(value).ok()?),
        FieldType::Timestamp => Datum::Time(i64::try_from(value).ok()?),
        FieldType::Date => Datum::Date(i32::try_from(value).ok()?),
        _ => return None,
    })
}

/// The part of a range that keys can hold; `None` if the form has no such bounds.
fn printable(field: &FieldSegment, low: i128, high: i128) -> Option<(i128, i128)> {
    let (least, most) = match &field.form {
        Form::ZeroPad(width) => (0, 10i128.pow(u32::from(*width)) - 1),
        Form::Epoch(epoch) => (0, 10i128.pow(u32::from(epoch.width())) * i128::from(epoch.size()) - 1),
        Form::MsReversed => (0, i128::from(i64::MAX)),
        Form::Time(_) if field.kind == FieldType::Date => ((FIRST_TIME / DAY).into(), (LAST_TIME / DAY).into()),
        // Local clocks and ISO years are off by less than a week.
        Form::Time(format) if format.zone().is_none() => (FIRST_TIME.into(), LAST_TIME.into()),
        Form::BigEndian | Form::Salt(_) => (i128::from(i64::MIN), i128::from(u64::MAX)),
        _ => return None,
    };
    let (least, most) = match field.kind {
        FieldType::UInt64 => (least.max(0), most.min(u64::MAX.into())),
        FieldType::Date => (least.max(i32::MIN.into()), most.min(i32::MAX.into())),
        _ => (least.max(i64::MIN.into()), most.min(i64::MAX.into())),
    };
    Some((low.max(least), high.min(most)))
}

/// What the field prints for a value; `None` if it is in no key.
fn print(field: &FieldSegment, after: Option<&Segment>, datum: Datum<'_>, calendar: &mut Calendar) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let own = Segment::Field(field.clone());
    // The literal after it says whether the value could be in a key at all.
    let literal = after.filter(|after| matches!(after, Segment::Literal(_)));
    let segments: Vec<Segment> = std::iter::once(own).chain(literal.cloned()).collect();
    write_segments(&segments, |_| Some(datum), calendar, &mut out).ok()?;
    out.truncate(out.len() - literal.and_then(Segment::width).unwrap_or(0));
    Some(out)
}

/// The range of texts from `low` to `high`, as keys that go on after the text.
fn texts(field: &FieldSegment, after: Option<&Segment>, low: Option<String>, high: Option<String>) -> Step {
    if !matches!(field.form, Form::Text) || field.kind != FieldType::Text {
        return Step::Open;
    }
    let low = low.unwrap_or_default().into_bytes();
    let Some(high) = high.map(String::into_bytes) else { return Step::Between(low, None) };
    let end = match after {
        None => Some([high.as_slice(), &[0]].concat()),
        // A text that `high` starts with sorts before it, but with the literal behind it perhaps after it.
        Some(Segment::Literal(literal)) => (0..=high.len())
            .filter_map(|length| high.get(..length))
            .map(|start| successor(&[start, literal.as_bytes()].concat()))
            .max_by(|a, b| a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(b)))
            .flatten(),
        Some(Segment::Field(_)) => None,
    };
    match end {
        Some(end) if end > low => Step::Between(low, Some(end)),
        Some(_) => Step::Pieces(Vec::new()),
        None => Step::Between(low, None),
    }
}

/// Sorts ranges and joins those that touch.
fn disjoint(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| range.end.as_ref().is_none_or(|end| *end > range.start));
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| *end >= range.start) => {
                // `None` has no end, and is the greatest.
                let later = match (&last.end, &range.end) {
                    (Some(end), Some(own)) => own > end,
                    (Some(_), None) => true,
                    (None, _) => false,
                };
                if later {
                    last.end = range.end;
                }
            }
            _ => out.push(range),
        }
    }
    out
}
