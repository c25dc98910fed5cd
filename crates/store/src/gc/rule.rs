//! A garbage-collection rule in cbt's text form.
//!
//! ```text
//! rule  = item { ("and" | "or") item }        left to right, no precedence
//! item  = "never" | "maxversions=" N | "maxage=" N ("ms" | "s" | "m" | "h" | "d") | "(" rule ")"
//! ```
//! `or` is a union: a cell is removed if either side removes it. `and` is an intersection: both must.

use std::ops::Range;

/// A rule that selects the cells of a column to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcRule {
    /// In postfix order, so that a rule of any depth is evaluated without recursion.
    steps: Vec<RuleToken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleToken {
    Never,
    /// Removes all but the newest N cells.
    MaxVersions(u32),
    /// Removes cells whose timestamp is more than so many microseconds before the logical time.
    MaxAge(i64),
    And,
    Or,
}

impl RuleToken {
    /// Whether this part of a rule alone removes a cell with `newer` newer versions; `and` and `or` remove none.
    #[inline]
    fn drops(self, newer: usize, timestamp: i64, now: i64) -> bool {
        match self {
            Self::MaxVersions(most) => newer >= most as usize,
            Self::MaxAge(age) => timestamp < now.saturating_sub(age),
            Self::Never | Self::And | Self::Or => false,
        }
    }
}

/// A syntax error in a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {wanted}")]
pub struct GcError {
    /// What was expected there, in words.
    pub wanted: &'static str,
    /// The bytes at fault; empty at the end of the rule.
    pub at: Range<usize>,
}

const ITEM: &str = "`maxversions=N`, `maxage=30d`, `never` or `(`";
const VERSIONS: &str = "a number of versions of 1 or more";
const AGE: &str = "an age such as `30d` (ms, s, m, h, d)";
const JOINT: &str = "`and`, `or` or the end of the rule";
const CLOSE: &str = "`)`";

impl GcRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// The error with its position.
    pub fn parse(text: &str) -> Result<Self, GcError> {
        let end = text.len()..text.len();
        let mut tokens = tokens(text).into_iter().peekable();
        let mut steps = Vec::new();
        // Operator stack: pending operators, and `None` for an open parenthesis.
        let mut waiting: Vec<Option<RuleToken>> = Vec::new();

        loop {
            while tokens.next_if(|(_, token)| *token == "(").is_some() {
                waiting.push(None);
            }
            let Some((at, token)) = tokens.next() else { return Err(GcError { wanted: ITEM, at: end }) };
            steps.push(item(token).map_err(|wanted| GcError { wanted, at })?);
            settle(&mut waiting, &mut steps);

            while waiting.last() == Some(&None) && tokens.next_if(|(_, token)| *token == ")").is_some() {
                waiting.pop();
                settle(&mut waiting, &mut steps);
            }

            match tokens.next() {
                Some((_, "and")) => waiting.push(Some(RuleToken::And)),
                Some((_, "or")) => waiting.push(Some(RuleToken::Or)),
                Some((at, _)) => return Err(GcError { wanted: JOINT, at }),
                None if waiting.contains(&None) => return Err(GcError { wanted: CLOSE, at: end }),
                None => return Ok(Self { steps }),
            }
        }
    }

    /// Whether the rule removes a cell with `newer` newer versions in its column and timestamp `timestamp`. A cell
    /// exactly as old as `maxage` stays.
    pub fn drops(&self, newer: usize, timestamp: i64, now: i64) -> bool {
        if let [only] = self.steps.as_slice() {
            return only.drops(newer, timestamp, now);
        }

        let mut verdicts: Vec<bool> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let verdict = match step {
                RuleToken::And => verdicts.pop().unwrap_or(false) & verdicts.pop().unwrap_or(false),
                RuleToken::Or => verdicts.pop().unwrap_or(false) | verdicts.pop().unwrap_or(false),
                item => item.drops(newer, timestamp, now),
            };
            verdicts.push(verdict);
        }
        verdicts.pop().unwrap_or(false)
    }

    /// Computes a value from the parts of the rule: from each `maxversions`, each `maxage` (microseconds), and from the values
    /// of both sides of `and` and `or`. `never` is `T::default()`.
    pub fn fold<T: Default>(
        &self,
        versions: impl Fn(u32) -> T,
        age: impl Fn(i64) -> T,
        and: impl Fn(T, T) -> T,
        or: impl Fn(T, T) -> T,
    ) -> T {
        let mut values: Vec<T> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = match step {
                RuleToken::Never => T::default(),
                RuleToken::MaxVersions(most) => versions(*most),
                RuleToken::MaxAge(micros) => age(*micros),
                RuleToken::And | RuleToken::Or => {
                    let right = values.pop().unwrap_or_default();
                    let left = values.pop().unwrap_or_default();
                    if matches!(step, RuleToken::And) { and(left, right) } else { or(left, right) }
                }
            };
            values.push(value);
        }

        values.pop().unwrap_or_default()
    }

    /// Whether it has a `maxage`: then any cell may expire, whatever its versions.
    pub fn looks_at_age(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, RuleToken::MaxAge(_)))
    }

    /// The least `maxage`, in microseconds.
    pub fn least_age(&self) -> Option<i64> {
        let ages = self.steps.iter().filter_map(|step| match step {
            RuleToken::MaxAge(age) => Some(*age),
            _ => None,
        });
        ages.min()
    }

    /// The least age, in microseconds, at which the newest version of a cell expires; `None` if it never does, because a
    /// `maxversions` keeps it.
    pub fn age_of_newest(&self) -> Option<i64> {
        let both = |one: Option<i64>, other: Option<i64>| Some(one?.max(other?));
        let either = |one: Option<i64>, other: Option<i64>| one.into_iter().chain(other).min();
        self.fold(|_| None, Some, both, either)
    }

    /// The rule that removes, of cells of any age, what this one removes of cells however young: by the number of newer versions
    /// alone. `None` if that is nothing.
    pub(crate) fn of_versions(&self) -> Option<Self> {
        let both = |one: Option<u32>, other: Option<u32>| Some(one?.max(other?));
        let either = |one: Option<u32>, other: Option<u32>| one.into_iter().chain(other).min();
        let most = self.fold(Some, |_| None, both, either)?;
        Some(Self { steps: vec![RuleToken::MaxVersions(most)] })
    }

    /// The number of newest versions that the rule always keeps, age aside.
    pub(crate) fn always_kept(&self) -> usize {
        let versions = self.steps.iter().filter_map(|step| match step {
            RuleToken::MaxVersions(most) => Some(*most as usize),
            _ => None,
        });
        versions.min().unwrap_or(usize::MAX)
    }
}

/// Applies the pending operator to the item just read.
fn settle(waiting: &mut Vec<Option<RuleToken>>, steps: &mut Vec<RuleToken>) {
    if let Some(Some(joint)) = waiting.last() {
        steps.push(*joint);
        waiting.pop();
    }
}

/// Reads a part of a rule that is no operator.
fn item(token: &str) -> Result<RuleToken, &'static str> {
    if token == "never" {
        return Ok(RuleToken::Never);
    }
    if let Some(count) = token.strip_prefix("maxversions=") {
        return positive(count).map(RuleToken::MaxVersions).ok_or(VERSIONS);
    }

    if let Some(age) = token.strip_prefix("maxage=") {
        let digits = age.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let micros = match age.get(digits.len()..) {
            Some("ms") => 1_000,
            Some("s") => 1_000_000,
            Some("m") => 60_000_000,
            Some("h") => 3_600_000_000,
            Some("d") => 86_400_000_000,
            _ => return Err(AGE),
        };
        return positive(digits).and_then(|n| i64::from(n).checked_mul(micros)).map(RuleToken::MaxAge).ok_or(AGE);
    }
    Err(ITEM)
}

/// A number of 1 or more, written in digits alone.
fn positive(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| plain && *number > 0)
}

/// The words and parentheses of a rule, with their places in it.
fn tokens(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut cuts = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() || matches!(c, '(' | ')') {
            cuts.push(start..at);
            start = at + c.len_utf8();
            if !c.is_whitespace() {
                cuts.push(at..start);
            }
        }
    }
    cuts.push(start..text.len());

    let tokens = cuts.into_iter().filter_map(|place| Some((place.clone(), text.get(place)?)));
    tokens.filter(|(_, token)| !token.is_empty()).collect()
}
