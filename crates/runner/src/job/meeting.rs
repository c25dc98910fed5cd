//! Whether two exports can publish under one name, told from their templates before anything is published.
//!
//! Each field of a template (a year, a month, a literal text) has the values that it can take over all times of records. The
//! names of two templates meet if values can be chosen for both so that the same text comes out. Fields are chosen by
//! themselves, so `{day:%Y%m%d}` also has a 31 February here: what is found not to meet never does.

use std::collections::{BTreeSet, HashSet};

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::Job;
use crate::job::per::Per;
use crate::job::sections::export::Export;

/// Two exports, or tables, of which one would publish or load over the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesMeet {
    /// Of the one job.
    pub name: String,
    /// Of the other job.
    pub other: String,
    /// The name that both can have.
    pub both: String,
}

/// The first export or table of `job` of which the name can be that of one of `other`.
pub fn names_that_meet(job: &Job, other: &Job) -> Option<NamesMeet> {
    let table = job.tables.iter().find(|table| other.table(&table.spec.name).is_some()).map(|table| NamesMeet {
        name: table.spec.name.clone(),
        other: table.spec.name.clone(),
        both: table.spec.name.clone(),
    });
    let exports = || job.exports.iter().flat_map(|one| other.exports.iter().map(move |other| (one, other)));
    table.or_else(|| {
        exports().find_map(|(one, other)| {
            meeting(one, other).map(|both| NamesMeet { name: one.name.clone(), other: other.name.clone(), both })
        })
    })
}

/// A name under which both exports can publish, or that one publishes under and the other is called by; `None` if there is
/// none. Names that differ in capitals only are one: some disks do not tell them apart. A folder inside that of another
/// part is one too.
pub(crate) fn meeting(one: &Export, other: &Export) -> Option<String> {
    if one.name.eq_ignore_ascii_case(&other.name) {
        return Some(one.name.clone());
    }
    let delta = one.delta || other.delta;
    let (my_prefix, their_prefix) = (one.name_template.literal_prefix(), other.name_template.literal_prefix());
    let (my_name, their_name) = (one.name.to_ascii_lowercase(), other.name.to_ascii_lowercase());
    let agree = |prefix: &str, other: &str| prefix.starts_with(other) || other.starts_with(prefix);
    // SQL knows an export by its name, and a part by that of its folder.
    let (names, mine, theirs) =
        (delta || agree(&my_prefix, &their_prefix), agree(&my_prefix, &their_name), agree(&their_prefix, &my_name));
    if !(names || mine || theirs) {
        return None;
    }
    let (my_pieces, their_pieces) = (Pieces::of(one), Pieces::of(other));
    let both = match delta {
        // A Delta table is all of a folder, whatever lies in it.
        true => my_pieces.first_folder().meet(&their_pieces.first_folder()),
        false => my_pieces.meet(&their_pieces),
    };
    both.or_else(|| my_pieces.meet(&Pieces::literal(&their_name)))
        .or_else(|| their_pieces.meet(&Pieces::literal(&my_name)))
}

/// Whether `path` inside `exports/` can be the folder of a part of `export`, or one that such a folder lies in.
pub fn may_be_folder_of(export: &Export, path: &str) -> bool {
    let depth = |name: &str| name.matches('/').count();
    let deepest = depth(&export.name_template.render(NaiveDate::default()));
    depth(path) <= deepest && Pieces::of(export).meet(&Pieces::literal(path)).is_some()
}

/// What the pieces of a name can be; `None` is any text.
struct Pieces(Vec<Option<BTreeSet<String>>>);

impl Pieces {
    fn of(export: &Export) -> Self {
        Self(export.name_template.pieces(&times(export.per)))
    }

    fn literal(text: &str) -> Self {
        Self(vec![Some(BTreeSet::from([text.to_ascii_lowercase()]))])
    }

    /// The name up to its first `/`.
    fn first_folder(&self) -> Self {
        let mut pieces = Vec::new();
        for piece in &self.0 {
            let folder = |text: &String| text.split('/').next().unwrap_or_default().to_owned();
            let ends = piece.as_ref().is_some_and(|texts| texts.iter().any(|text| text.contains('/')));
            pieces.push(piece.as_ref().map(|texts| texts.iter().map(folder).collect()));
            if ends {
                break;
            }
        }
        Self(pieces)
    }

    /// A text that both can be, or that one is and the other goes on from with a `/`.
    fn meet(&self, other: &Self) -> Option<String> {
        // How far both are, the text so far, and how much of it is of the one that is ahead and not yet of the other.
        let mut open = vec![State { at: [0, 0], text: String::new(), ahead: 0, leads: 0 }];
        let mut seen = HashSet::new();
        while let Some(state) = open.pop() {
            let rest = state.text.get(state.text.len() - state.ahead..).unwrap_or_default().to_owned();
            if !seen.insert((state.at, rest.clone(), state.leads)) {
                continue;
            }
            let sides = [self, other];
            // The one behind goes on; of two that are level the one that is not at its end.
            let ends =
                |side: usize| sides.get(side).zip(state.at.get(side)).is_some_and(|(side, at)| *at >= side.0.len());
            let behind = if rest.is_empty() && ends(1 - state.leads) { state.leads } else { 1 - state.leads };
            if ends(behind) {
                match rest.is_empty() || rest.starts_with('/') {
                    true => return Some(state.text),
                    false => continue,
                }
            }
            let piece = sides.get(behind).zip(state.at.get(behind)).and_then(|(side, at)| side.0.get(*at));
            let Some(piece) = piece else { continue };
            // What may be anything may be what the other is.
            let Some(texts) = piece else { return Some(format!("{}..", state.text)) };
            for text in texts.iter().rev() {
                let mut at = state.at;
                if let Some(at) = at.get_mut(behind) {
                    *at += 1;
                }
                if let Some(further) = rest.strip_prefix(text.as_str()) {
                    open.push(State { at, text: state.text.clone(), ahead: further.len(), leads: 1 - behind });
                } else if let Some(further) = text.strip_prefix(rest.as_str()) {
                    let text = format!("{}{further}", state.text);
                    open.push(State { at, text, ahead: further.len(), leads: behind });
                }
            }
        }
        None
    }
}

/// Two names on their way.
struct State {
    /// Pieces taken of each.
    at: [usize; 2],
    text: String,
    /// Bytes at the end of the text that only one has.
    ahead: usize,
    /// Which that is.
    leads: usize,
}

/// Starts of periods that show all values of each field of a time: years that begin on all weekdays, leap years among them, and
/// the years that records can be of.
fn times(per: Per) -> Vec<NaiveDateTime> {
    let date = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).unwrap_or_default();
    let cycle = date(2000, 1, 1).iter_days().take(8 * 366);
    let years = (1900..=2262).flat_map(|year| [date(year, 1, 1), date(year, 12, 1), date(year, 12, 31)]);
    let days = cycle.chain(years).filter(|day| per != Per::Month || day.day() == 1);
    let mut times: Vec<NaiveDateTime> = days.map(|day| day.and_time(NaiveTime::MIN)).collect();
    if per == Per::Hour {
        let midnight = date(2000, 1, 1).and_time(NaiveTime::MIN);
        times.extend((1..24).map(|hour| midnight + TimeDelta::hours(hour)));
    }
    if per == Per::Query {
        times.truncate(1);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{TimeTemplate, Word};

    fn pieces(template: &str) -> Pieces {
        let (words, per): (&[Word], _) = match () {
            () if template.contains("{hour") => (&[Word::Day, Word::Hour], Per::Hour),
            () if template.contains("{day") => (&[Word::Day], Per::Day),
            () if template.contains("{month") => (&[Word::Month], Per::Month),
            () => (&[], Per::Query),
        };
        Pieces(TimeTemplate::parse(template, words).unwrap().pieces(&times(per)))
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
            assert!(pieces(one).meet(&pieces(other)).is_some(), "{one} {other}");
            assert!(pieces(other).meet(&pieces(one)).is_some(), "{other} {one}");
        }
        assert_eq!(pieces("X_{day:%Y%m%d}").meet(&pieces("X_{month:%Y%m01}")).as_deref(), Some("x_19000101"));
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
            assert_eq!(pieces(one).meet(&pieces(other)), None, "{one} {other}");
            assert_eq!(pieces(other).meet(&pieces(one)), None, "{other} {one}");
        }
        assert!(pieces("E/day={day}").first_folder().meet(&pieces("E/month={month}").first_folder()).is_some());
    }
}
