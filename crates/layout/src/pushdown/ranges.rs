//! Translates predicates on record fields into ranges of row keys.

use crate::plan::Layout;
use crate::pushdown::bound::{FieldBound, KnownValues, known_values};
use crate::pushdown::key_range::{KeyRange, successor};
use crate::scalar::{Scalar, ScalarRef};
use crate::schema::FieldType;
use crate::template::form::Form;
use crate::template::print::write_segments;
use crate::template::segment::{FieldSegment, Segment};
use crate::time::DAY;
use crate::time::calendar::{Calendar, MAX_TIME, MIN_TIME};

/// The most ranges that are made: beyond this, reading more keys is cheaper than seeking between ranges.
const MAX_RANGES: usize = 10_000;
/// The most steps that a time range is enumerated into, so that predicates on later fields narrow the ranges.
const MAX_STEPS: i128 = 1_000;

impl Layout {
    /// Key ranges that cover every row with a record that satisfies all `bounds`: sorted and disjoint. The full range if
    /// nothing can be pushed down, no range if no row can match.
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
                Step::Pieces(pieces) if prefixes.len().saturating_mul(pieces.len()) <= MAX_RANGES => {
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
                    return KeyRange::disjoint(ranges.collect());
                }
                Step::Pieces(_) | Step::Open => {
                    return KeyRange::disjoint(prefixes.iter().map(|it| KeyRange::prefix(it)).collect());
                }
            }
        }
        // Whole keys.
        KeyRange::disjoint(prefixes.iter().map(|key| KeyRange::of_key(key)).collect())
    }

    /// The predicates on the field, if keys preserve it exactly enough to use them.
    fn known(&self, bounds: &[FieldBound], segment: &FieldSegment) -> KnownValues {
        let Some(field) = self.fields.get(segment.field) else { return KnownValues::Nothing };
        // Equal floats can have different texts (-0.0 and 0.0).
        if segment.kind == FieldType::Float64 {
            return KnownValues::Nothing;
        }
        let Some(record) = self.records.iter().find(|record| record.field == segment.field) else {
            return KnownValues::Nothing;
        };

        let found = known_values(bounds, &field.name, field.kind);
        if segment.kind == FieldType::Timestamp && !matches!(found, KnownValues::Nothing) {
            // A record's time may be coarser than the event time that the key was printed from. Then the key does not
            // follow from it, unless the coarser time was itself read from the key.
            let finest = segment.finest();
            let follows = record.steps.iter().zip(&record.origins).all(|(step, origin)| {
                let is_read_from_key = origin.is_key() && segment.resolution().is_some();
                *step <= 1 || (finest % *step == 0) || is_read_from_key
            });
            if !follows {
                return KnownValues::Nothing;
            }
        }
        found
    }

    /// How the field at segment `at`, with these known values, extends the keys before it.
    fn step(
        &self,
        field: &FieldSegment,
        after: Option<&Segment>,
        known: KnownValues,
        bounds: &[FieldBound],
        at: usize,
        calendar: &mut Calendar,
    ) -> Step {
        match known {
            KnownValues::In(values) => {
                let mut pieces = Vec::with_capacity(values.len());
                for value in &values {
                    match value.typed(field.kind) {
                        // No key contains a value that cannot be printed.
                        Some(scalar) => pieces.extend(print(field, after, scalar, calendar)),
                        None if is_number(value) && matches!(field.kind, FieldType::UInt64 | FieldType::Int64) => {}
                        None => return Step::Open,
                    }
                }

                pieces.sort_unstable();
                pieces.dedup();
                Step::Pieces(pieces)
            }
            KnownValues::Integers(low, high) => self.between(field, low, high, bounds, at, calendar),
            KnownValues::Texts(low, high) => texts(field, after, low, high),
            KnownValues::Nothing => match field.form {
                Form::Salt(count) => Step::Pieces((1..=count).map(|salt| salt.to_string().into_bytes()).collect()),
                _ => Step::Open,
            },
        }
    }

    /// As [`Self::step`], for integers from `low` to `high`, both included.
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
            .any(|later| later.field != field.field && !matches!(self.known(bounds, later), KnownValues::Nothing));

        let step = i128::from(field.finest().max(1));
        let step = if field.kind == FieldType::Date { (step / i128::from(DAY)).max(1) } else { step };
        let steps = high / step - low / step + 1;
        // Months and years differ in length, so equal steps could skip one.
        let even = step <= i128::from(7 * DAY)
            && !matches!(field.form, Form::Time(ref format) if format.resolution().is_none());
        if even && steps <= MAX_STEPS && (later_known || !(ascends || descends)) && field.kind != FieldType::Text {
            let mut pieces = Vec::new();
            let mut value = low;
            while value <= high {
                pieces.extend(print_integer(field, value, calendar));
                value += step;
            }
            pieces.extend(print_integer(field, high, calendar));
            pieces.sort_unstable();
            pieces.dedup();
            return Step::Pieces(pieces);
        }

        let (first, last) = match (ascends, descends) {
            (true, _) => (low, high),
            (_, true) => (high, low),
            _ => return Step::Open,
        };
        match (print_integer(field, first, calendar), print_integer(field, last, calendar)) {
            // A single value lets the next field narrow further.
            (Some(first), Some(last)) if first == last => Step::Pieces(vec![first]),
            (Some(first), Some(last)) => Step::Between(first, successor(&last)),
            _ => Step::Open,
        }
    }
}

/// How a field of the key extends the prefixes before it.
enum Step {
    /// The key goes on with one of these byte strings.
    Pieces(Vec<Vec<u8>>),
    /// The key goes on with bytes from the first string to before the second, if there is one.
    Between(Vec<u8>, Option<Vec<u8>>),
    /// The key may go on with anything.
    Open,
}

fn is_number(value: &Scalar) -> bool {
    matches!(value, Scalar::UInt64(_) | Scalar::Int64(_))
}

/// An integer as a value of type `kind`; `None` if it is out of range.
fn integer(kind: FieldType, value: i128) -> Option<ScalarRef<'static>> {
    Some(match kind {
        FieldType::UInt64 => ScalarRef::UInt(u64::try_from(value).ok()?),
        FieldType::Int64 => ScalarRef::Int(i64::try_from(value).ok()?),
        FieldType::Timestamp => ScalarRef::Time(i64::try_from(value).ok()?),
        FieldType::Date => ScalarRef::Date(i32::try_from(value).ok()?),
        _ => return None,
    })
}

/// The part of a range that the form can print; `None` if the form has no such bounds.
fn printable(field: &FieldSegment, low: i128, high: i128) -> Option<(i128, i128)> {
    let (least, most) = match &field.form {
        Form::ZeroPad(width) => (0, 10i128.pow(u32::from(*width)) - 1),
        Form::Epoch(epoch) => (0, 10i128.pow(u32::from(epoch.width())) * i128::from(epoch.size()) - 1),
        Form::MsReversed => (0, i128::from(i64::MAX)),
        Form::Time(_) if field.kind == FieldType::Date => ((MIN_TIME / DAY).into(), (MAX_TIME / DAY).into()),
        // Local times and ISO years deviate by less than a week.
        Form::Time(format) if format.zone().is_none() => (MIN_TIME.into(), MAX_TIME.into()),
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

/// The bytes that the field prints for an integer; `None` if no key contains it.
fn print_integer(field: &FieldSegment, value: i128, calendar: &mut Calendar) -> Option<Vec<u8>> {
    print(field, None, integer(field.kind, value)?, calendar)
}

/// The bytes that the field prints for a value; `None` if no key contains it.
fn print(
    field: &FieldSegment,
    after: Option<&Segment>,
    scalar: ScalarRef<'_>,
    calendar: &mut Calendar,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // A value that contains the next literal is rejected by the encoder.
    let literal = after.filter(|after| matches!(after, Segment::Literal(_)));
    let printed = Segment::Field(field.clone());
    let segments: Vec<Segment> = std::iter::once(printed).chain(literal.cloned()).collect();
    write_segments(&segments, |_| Some(scalar), calendar, &mut out).ok()?;
    out.truncate(out.len() - literal.and_then(Segment::width).unwrap_or(0));
    Some(out)
}

/// The range of texts from `low` to `high`, as prefixes of keys.
fn texts(field: &FieldSegment, after: Option<&Segment>, low: Option<String>, high: Option<String>) -> Step {
    if !matches!(field.form, Form::Text) || field.kind != FieldType::Text {
        return Step::Open;
    }

    let low = low.unwrap_or_default().into_bytes();
    let Some(high) = high.map(String::into_bytes) else { return Step::Between(low, None) };
    let end = match after {
        None => Some([high.as_slice(), &[0]].concat()),
        // A prefix of `high` sorts before it, but together with the literal that follows it may sort after it.
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
