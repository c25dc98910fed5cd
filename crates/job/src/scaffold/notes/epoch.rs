//! Numbers that are read as times since 1970 and may count from another moment.

use chrono::{DateTime, SecondsFormat, Utc};
use tidetable_layout::FieldType;
use tidetable_layout::time::{DAY, SECOND};

use crate::scaffold::draft::Draft;
use crate::scaffold::identifier::identifier;
use crate::scaffold::notes::values::cut;

/// Seconds from 1970 to the starts of other counts.
const TO_1904: i64 = -2_082_844_800;
const TO_1980: i64 = 315_964_800;
const TO_2001: i64 = 978_307_200;
/// The start of the year 2000, before which few files of today begin.
const YEAR_2000: i64 = 946_684_800 * SECOND;

/// What the event time is if it counts from 1904 and would lie in the future, from GPS's 1980, or from 2001 and lies before 2000.
pub(super) fn other_epoch(draft: &Draft<'_>) -> Option<String> {
    let (sample, time) = (draft.sample, draft.time);
    let columns = sample.spec.columns.iter().zip(&sample.columns).zip(&draft.facts.columns);
    let ((spec, found), column) = columns.into_iter().find(|((spec, _), _)| spec.name == time.name)?;
    let unit = match spec.kind {
        FieldType::Timestamp => spec.format.as_deref(),
        _ => found.maybe_epoch,
    };
    let (count, what) = match unit? {
        "s" => (1, "seconds"),
        "ms" => (1000, "milliseconds"),
        "us" => (1_000_000, "microseconds"),
        _ => return None,
    };

    let first = time.micros.iter().flatten().next().copied()?;
    let (least, most) = (time.micros.iter().flatten().min()?, time.micros.iter().flatten().max()?);
    let now = Utc::now().timestamp_micros();
    let (shift, who) = match () {
        () if *least > now + DAY => (TO_1904, "1904, as LabVIEW and older Macs do"),
        () if column.words().iter().any(|word| word == "gps") => (TO_1980, "1980-01-06, as GPS does"),
        () if *most < YEAR_2000 && most + TO_2001 * SECOND <= now => (TO_2001, "2001, as Apple's systems do"),
        () => return None,
    };

    let name = identifier(&spec.name);
    let shifted = format!("{name} {} {}", if shift < 0 { '-' } else { '+' }, shift.abs() * count);
    let has_fraction = found.first.as_ref().is_some_and(|first| first.contains(['.', ',']));
    let (kind, sql) = match has_fraction {
        true => ("float64", format!("to_timestamp_micros(cast(({shifted}) * {} as bigint))", SECOND / count)),
        false => ("int64", format!("to_timestamp_{}({shifted})", what)),
    };
    let sql = sql.replace("milliseconds", "millis").replace("microseconds", "micros");
    let [read, other] = [first, first + shift * SECOND].map(written);
    Some(format!(
        "{}: read as {what} since 1970, '{}' is {read}. If it counts from {who}, that is {other}: declare it {kind}, and write {sql} \
         into `derive`.",
        spec.name,
        cut(found.first.as_deref().unwrap_or_default()),
    ))
}

fn written(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map_or(String::new(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}
