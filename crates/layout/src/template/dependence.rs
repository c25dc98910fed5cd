//! Functional dependence of fields on the segments of a key.

use crate::template::form::Form;
use crate::template::segment::{FieldSegment, Segment};
use crate::template::time_format::Unit;
use crate::time::DAY;

/// Whether the key determines `wanted`: all events with one key have the same value.
pub(crate) fn determined(key: &[Segment], wanted: &FieldSegment) -> bool {
    key.iter().filter_map(Segment::field).filter(|segment| segment.field == wanted.field).any(|segment| {
        let Some(step) = segment.resolution() else { return *segment == *wanted };
        // An hour of local time can repeat.
        let is_exact = step == 1 && is_in_utc(segment);
        // Weeks do not nest in months and years, nor these in weeks; days nest in all of them.
        let is_nested = step <= DAY || counts_weeks(segment) == counts_weeks(wanted);
        let is_as_fine = is_in_utc(segment) && is_in_utc(wanted) && step <= wanted.finest();
        *segment == *wanted || is_exact || (is_as_fine && is_nested)
    })
}

/// Whether the segment prints no local time.
fn is_in_utc(segment: &FieldSegment) -> bool {
    match &segment.form {
        Form::Time(format) => format.zone().is_none(),
        _ => true,
    }
}

/// Whether the segment prints a week, or the year that weeks belong to.
fn counts_weeks(segment: &FieldSegment) -> bool {
    match &segment.form {
        Form::Time(format) => format.units().any(|unit| matches!(unit, Unit::IsoYear | Unit::IsoWeek)),
        _ => false,
    }
}

/// The time formats of `field` among `segments` that share the zone of the first, and the units they print.
pub(crate) fn time_parts(segments: &[Segment], field: usize) -> (Vec<usize>, Vec<Unit>, Option<chrono_tz::Tz>) {
    let (mut places, mut units, mut zone) = (Vec::new(), Vec::new(), None);
    for (at, segment) in segments.iter().enumerate() {
        if let Some(FieldSegment { field: printed, form: Form::Time(format), .. }) = segment.field()
            && *printed == field
            // Directives that only chrono knows cannot be parsed.
            && format.width().is_some()
            && (places.is_empty() || zone == format.zone())
        {
            zone = format.zone();
            places.push(at);
            units.extend(format.units());
        }
    }
    (places, units, zone)
}
