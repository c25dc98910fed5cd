//! Functional dependence of fields on the segments of a key.

use crate::template::form::Form;
use crate::template::segment::{FieldSegment, Segment};
use crate::template::time_format::Unit;
use crate::time::DAY;

/// Whether the key determines `wanted`: all events with one key have the same value.
pub(crate) fn determined(key: &[Segment], wanted: &FieldSegment) -> bool {
    let in_utc = |segment: &FieldSegment| match &segment.form {
        Form::Time(format) => format.zone().is_none(),
        _ => true,
    };
    let counts_weeks = |segment: &FieldSegment| match &segment.form {
        Form::Time(format) => format.units().any(|unit| matches!(unit, Unit::IsoYear | Unit::IsoWeek)),
        _ => false,
    };
    // Weeks do not nest in months and years, nor these in weeks; days nest in all of them.
    let nested = |own: &FieldSegment, step: i64| step <= DAY || counts_weeks(own) == counts_weeks(wanted);
    let own = key.iter().filter_map(Segment::field).filter(|own| own.field == wanted.field);
    own.into_iter().any(|own| {
        let Some(step) = own.resolution() else { return *own == *wanted };
        // An hour of local time can repeat.
        let exact = step == 1 && in_utc(own);
        *own == *wanted || exact || (in_utc(own) && in_utc(wanted) && step <= wanted.finest() && nested(own, step))
    })
}

/// The time formats of `field` among `segments` that share the zone of the first, and the units they print.
pub(crate) fn time_parts(segments: &[Segment], field: usize) -> (Vec<usize>, Vec<Unit>, Option<chrono_tz::Tz>) {
    let (mut places, mut units, mut zone) = (Vec::new(), Vec::new(), None);
    for (at, segment) in segments.iter().enumerate() {
        if let Some(FieldSegment { field: own, form: Form::Time(format), .. }) = segment.field()
            && *own == field
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
