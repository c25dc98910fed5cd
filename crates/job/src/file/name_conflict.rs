//! Name collisions of exports, found from their templates before anything is published.
//!
//! Each field of a template (a year, a month, literal text) has a set of possible values over all event times. Two
//! templates collide if some choice of values gives both the same text. Fields are chosen independently,
//! so `{day:%Y%m%d}` includes 31 February: the check may report a collision that cannot occur, but misses none.

use std::collections::{BTreeSet, HashSet};

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use crate::calendar::per::Per;
use crate::file::declaration::Job;
use crate::file::sections::export::Export;

/// Two exports or tables of which one would overwrite the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameConflict {
    /// Name of the export or table of the first job.
    pub name: String,
    /// Name of the export or table of the other job.
    pub other: String,
    /// A name that both can have, as an example; with `..` for any further text.
    pub both: String,
}

/// The first export or table of `job` whose name can collide with one of `other`.
pub fn name_conflict(job: &Job, other: &Job) -> Option<NameConflict> {
    let table = job.tables.iter().find(|table| other.table(&table.spec.name).is_some()).map(|table| NameConflict {
        name: table.spec.name.clone(),
        other: table.spec.name.clone(),
        both: table.spec.name.clone(),
    });
    table.or_else(|| {
        let mut exports = job.exports.iter().flat_map(|one| other.exports.iter().map(move |other| (one, other)));
        exports.find_map(|(one, other)| {
            common_name(one, other).map(|both| NameConflict { name: one.name.clone(), other: other.name.clone(), both })
        })
    })
}

/// A name that both exports can publish under, or that is the name of one export and of a part of the other; `None` if
/// there is none. Compares case-insensitively, as some file systems do. A directory inside that of another
/// part collides too.
pub(crate) fn common_name(one: &Export, other: &Export) -> Option<String> {
    if one.name.eq_ignore_ascii_case(&other.name) {
        return Some(one.name.clone());
    }

    // Most pairs differ in their first letters. SQL knows an export by its name, and a part by its directory.
    let has_log = one.log.is_some() || other.log.is_some();
    let (my_prefix, their_prefix) = (one.name_template.literal_prefix(), other.name_template.literal_prefix());
    let (my_name, their_name) = (one.name.to_ascii_lowercase(), other.name.to_ascii_lowercase());
    let may_meet = has_log
        || may_begin_alike(&my_prefix, &their_prefix)
        || may_begin_alike(&my_prefix, &their_name)
        || may_begin_alike(&their_prefix, &my_name);
    if !may_meet {
        return None;
    }

    let (my_segments, their_segments) = (NameSegments::of(one), NameSegments::of(other));
    let both = match has_log {
        // A table with a log owns its whole directory.
        true => my_segments.first_folder().meet(&their_segments.first_folder()),
        false => my_segments.meet(&their_segments),
    };
    both.or_else(|| my_segments.meet(&NameSegments::literal(&their_name)))
        .or_else(|| their_segments.meet(&NameSegments::literal(&my_name)))
}

fn may_begin_alike(prefix: &str, other: &str) -> bool {
    prefix.starts_with(other) || other.starts_with(prefix)
}

/// Whether `path` inside `exports/` can be the directory of a part of `export`, or a parent of one.
pub fn may_be_folder_of(export: &Export, path: &str) -> bool {
    let deepest = export.name_template.render(NaiveDate::default()).matches('/').count();
    path.matches('/').count() <= deepest && NameSegments::of(export).meet(&NameSegments::literal(path)).is_some()
}

/// The possible values of each segment of a name; `None` is any text.
struct NameSegments(Vec<Option<BTreeSet<String>>>);

impl NameSegments {
    fn of(export: &Export) -> Self {
        Self(export.name_template.segment_values(&times(export.per)))
    }

    fn literal(text: &str) -> Self {
        Self(vec![Some(BTreeSet::from([text.to_ascii_lowercase()]))])
    }

    fn first_folder(&self) -> Self {
        let mut segments = Vec::new();
        for segment in &self.0 {
            segments.push(
                segment.as_ref().map(|texts| {
                    texts.iter().map(|text| text.split('/').next().unwrap_or_default().to_owned()).collect()
                }),
            );
            if segment.as_ref().is_some_and(|texts| texts.iter().any(|text| text.contains('/'))) {
                break;
            }
        }
        Self(segments)
    }

    /// A text that both can be, or one that one can be and that continues with a `/` in the other. Depth-first search over
    /// how far each name is matched.
    fn meet(&self, other: &Self) -> Option<String> {
        let sides = [self, other];
        let mut open = vec![MatchState { at: [0, 0], text: String::new(), ahead: 0, leads: 0 }];
        let mut seen = HashSet::new();
        while let Some(state) = open.pop() {
            let rest = state.text.get(state.text.len() - state.ahead..).unwrap_or_default().to_owned();
            if !seen.insert((state.at, rest.clone(), state.leads)) {
                continue;
            }

            // Advance the one that is behind; if level, the one that is not at its end.
            let is_level = rest.is_empty() && state.next(&sides, 1 - state.leads).is_none();
            let behind = if is_level { state.leads } else { 1 - state.leads };
            let Some(segment) = state.next(&sides, behind) else {
                match rest.is_empty() || rest.starts_with('/') {
                    true => return Some(state.text),
                    false => continue,
                }
            };

            // A segment of any text matches whatever the other is.
            let Some(texts) = segment else { return Some(format!("{}..", state.text)) };
            for text in texts.iter().rev() {
                let mut at = state.at;
                at[behind] += 1;
                if let Some(further) = rest.strip_prefix(text.as_str()) {
                    open.push(MatchState { at, text: state.text.clone(), ahead: further.len(), leads: 1 - behind });
                } else if let Some(further) = text.strip_prefix(rest.as_str()) {
                    let text = format!("{}{further}", state.text);
                    open.push(MatchState { at, text, ahead: further.len(), leads: behind });
                }
            }
        }
        None
    }
}

/// How far two names are matched, in a search for a text that both can be.
struct MatchState {
    at: [usize; 2],
    text: String,
    /// Bytes at the end of `text` that only one name has.
    ahead: usize,
    leads: usize,
}

impl MatchState {
    /// The next segment of name `side`; `None` at its end.
    fn next<'s>(&self, sides: &[&'s NameSegments; 2], side: usize) -> Option<&'s Option<BTreeSet<String>>> {
        sides[side].0.get(self.at[side])
    }
}

/// Period starts that show all values of each time field: years that begin on each weekday, leap years, and the
/// range of years that records can have.
fn times(per: Per) -> Vec<NaiveDateTime> {
    let mut days: Vec<NaiveDate> = date(2000, 1, 1).iter_days().take(8 * 366).collect();
    for year in 1900..=2262 {
        days.extend([date(year, 1, 1), date(year, 12, 1), date(year, 12, 31)]);
    }
    days.retain(|day| per != Per::Month || day.day() == 1);

    let mut times: Vec<NaiveDateTime> = days.into_iter().map(|day| day.and_time(NaiveTime::MIN)).collect();
    if per == Per::Hour {
        let midnight = date(2000, 1, 1).and_time(NaiveTime::MIN);
        times.extend((1..24).map(|hour| midnight + TimeDelta::hours(hour)));
    }
    if per == Per::Query {
        times.truncate(1);
    }
    times
}

fn date(year: i32, month: u32, day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, month, day).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::template::{Placeholder, TimeTemplate};

    fn segments(template: &str) -> NameSegments {
        let (allowed, per): (&[Placeholder], _) = match () {
            () if template.contains("{hour") => (&[Placeholder::Day, Placeholder::Hour], Per::Hour),
            () if template.contains("{day") => (&[Placeholder::Day], Per::Day),
            () if template.contains("{month") => (&[Placeholder::Month], Per::Month),
            () => (&[], Per::Query),
        };
        NameSegments(TimeTemplate::parse(template, allowed).unwrap().segment_values(&times(per)))
    }

    #[test]
    fn names_that_can_be_one() {
        for (one, other) in [
            ("X_{day:%Y%m%d}", "X_{month:%Y%m01}"),
            ("X_{day:%Y%m%d}", "X_{month:%Y%m%d}"),
            ("X_{day:%Y%m%d}", "X_20240131"),
            ("X_{day:%Y%m%d}", "x_20240131"),
            ("X_{day:%Y}{day:%m%d}", "X_{day:%Y%m%d}"),
            ("X_{hour:%Y%m%d%H}", "X_{day:%Y%m%d00}"),
            ("X_{day:%F}", "X_{day:%Y-%m-%d}"),
            ("X_{day:%y%m%d}", "X_{month:%Y%m}"),
            ("E/dt={day}", "E"),
            ("E/dt={day}", "E/dt={month}-01"),
            ("E/dt={day}/h={hour:%H}", "E/dt={day}"),
            ("X_{hour:%s}", "X_12"),
        ] {
            assert!(segments(one).meet(&segments(other)).is_some(), "{one} {other}");
            assert!(segments(other).meet(&segments(one)).is_some(), "{other} {one}");
        }
        assert_eq!(segments("X_{day:%Y%m%d}").meet(&segments("X_{month:%Y%m01}")).as_deref(), Some("x_19000101"));
    }

    #[test]
    fn names_that_are_never_one() {
        for (one, other) in [
            ("X_{day:%Y%m%d}", "X_{month:%Y%m}"),
            ("X_{day:%Y%m%d}", "X_{month:%Y%m00}"),
            ("X_{day:%Y%m%d}", "X_{month:%Y%m32}"),
            ("X_{day:%Y%m%d}", "X_{day:%d%m%Y}"),
            ("X_{day:%Y%m%d}", "X_{hour:%Y%m%d%H}"),
            ("X_{day:%Y%m%d}", "X_{hour:%Y%m%dT%H}"),
            ("X_{day:%Y%m%d}", "Y_{day:%Y%m%d}"),
            ("X_{day:%Y%m%d}", "X_{day:%Y%m%d}_"),
            ("X_{day:%Y%m%d}", "X"),
            ("X_{day:%Y%m%d}", "X_20240132"),
            ("E/dt={day}", "F"),
            ("E/dt={day}", "E_"),
            ("E/day={day}", "E/month={month}"),
            ("X_{month:%Y%m}", "X_{day:%Y%j}"),
            ("X_{day:%G-W%V-%u}", "X_{day:%Y-%m-%d}"),
        ] {
            assert_eq!(segments(one).meet(&segments(other)), None, "{one} {other}");
            assert_eq!(segments(other).meet(&segments(one)), None, "{other} {one}");
        }
        assert!(segments("E/day={day}").first_folder().meet(&segments("E/month={month}").first_folder()).is_some());
    }
}
