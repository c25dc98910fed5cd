//! Cells of aggregate families. They are pushed by state: what is sent merges with what is there, so it must not be sent
//! twice. A token keeps the service from applying a repetition within a quarter of an hour; and before anything is sent whose
//! first attempt may have succeeded, the cells are read back.

use bytes::Bytes;
use tidetable_layout::hll::Sketch;
use tidetable_layout::schema::Merge as Kind;
use xxhash_rust::xxh3::xxh3_128;

use crate::client::{Cell, Row};
use crate::proto::data::mutate_rows_request::Entry;
use crate::proto::data::mutation::{MergeToCell, Mutation as Mutate};
use crate::proto::data::{Idempotency, Mutation, Value, value};

/// A cell that is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedCell {
    pub(crate) kind: Kind,
    pub(crate) family: String,
    pub(crate) qualifier: Bytes,
    pub(crate) timestamp: i64,
    /// What is there before; `None` for no cell.
    pub(crate) before: Option<Bytes>,
    /// What is there afterwards.
    pub(crate) after: Bytes,
}

/// The merged cells of a row.
#[derive(Debug, Clone)]
pub(crate) struct MergeRow {
    pub(crate) entry: Entry,
    pub(crate) cells: Vec<MergedCell>,
}

/// What the cells of a row in the target say of an attempt to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attempted {
    /// All cells are as the attempt leaves them.
    Applied,
    /// The attempt was not applied, so the entry is sent again.
    Missing,
    /// Neither: someone else writes, too. The cell, and its value.
    Foreign(MergedCell, Option<Bytes>),
}

/// The state that merged with `before` gives `after`; `None` if there is none, as where a sum would pass 64 bits or a maximum
/// sinks.
pub(crate) fn state_between(kind: Kind, before: Option<&[u8]>, after: &[u8]) -> Option<Bytes> {
    let Some(before) = before else { return Some(Bytes::copy_from_slice(after)) };
    match kind {
        Kind::Sum => {
            let difference = number(after)?.checked_sub(number(before)?)?;
            Some(Bytes::copy_from_slice(&difference.to_be_bytes()))
        }
        Kind::Min => (number(after)? <= number(before)?).then(|| Bytes::copy_from_slice(after)),
        Kind::Max => (number(after)? >= number(before)?).then(|| Bytes::copy_from_slice(after)),
        Kind::Hll => {
            let mut joined = Sketch::read(before).ok()?;
            joined.unite(after).ok()?;
            let mut bytes = Vec::new();
            joined.write(&mut bytes);
            (bytes == after).then(|| Bytes::copy_from_slice(after))
        }
        Kind::Newest => None,
    }
}

/// The state of a sum, minimum or maximum; `None` if it has another length than eight bytes.
fn number(state: &[u8]) -> Option<i64> {
    state.try_into().ok().map(i64::from_be_bytes)
}

impl MergeRow {
    /// The entry that makes `cells` of `key` what they are afterwards.
    ///
    /// # Errors
    /// The cell that no merge can make so.
    pub(crate) fn new(push: &str, key: &Bytes, cells: Vec<MergedCell>, now: i64) -> Result<Self, Box<MergedCell>> {
        let mut mutations = Vec::with_capacity(cells.len());
        for cell in &cells {
            let state =
                state_between(cell.kind, cell.before.as_deref(), &cell.after).ok_or_else(|| Box::new(cell.clone()))?;
            let merge = MergeToCell {
                family_name: cell.family.clone(),
                column_qualifier: Some(raw(cell.qualifier.clone())),
                timestamp: Some(Value { kind: Some(value::Kind::RawTimestampMicros(cell.timestamp)), r#type: None }),
                input: Some(raw(state)),
            };
            mutations.push(Mutation { mutation: Some(Mutate::MergeToCell(merge)) });
        }
        let start = prost_types::Timestamp {
            seconds: now.div_euclid(1_000_000),
            nanos: i32::try_from(now.rem_euclid(1_000_000) * 1000).unwrap_or(0),
        };
        let token = Bytes::copy_from_slice(&token(push, key, &cells).to_be_bytes());
        let idempotency = Some(Idempotency { token, start_time: Some(start) });
        Ok(Self { entry: Entry { row_key: key.clone(), mutations, idempotency }, cells })
    }

    /// What the row in the target says of an attempt whose outcome is unknown. An entry is applied as a whole or not at all.
    pub(crate) fn attempted(&self, row: Option<&Row>) -> Attempted {
        for cell in &self.cells {
            let found = row.and_then(|row| find(&row.cells, cell));
            if found == cell.before.as_ref() {
                return Attempted::Missing;
            }
            // What is merged once more changes nothing, except in a sum.
            if found != Some(&cell.after) && cell.kind == Kind::Sum {
                return Attempted::Foreign(cell.clone(), found.cloned());
            }
            if found != Some(&cell.after) {
                return Attempted::Missing;
            }
        }
        Attempted::Applied
    }
}

fn find<'a>(cells: &'a [Cell], wanted: &MergedCell) -> Option<&'a Bytes> {
    let place = (wanted.family.as_str(), &*wanted.qualifier, std::cmp::Reverse(wanted.timestamp));
    let at = cells.binary_search_by(|cell| cell.place().cmp(&place)).ok()?;
    cells.get(at).map(|cell| &cell.value)
}

fn raw(bytes: Bytes) -> Value {
    Value { kind: Some(value::Kind::RawValue(bytes)), r#type: None }
}

/// The token of an entry: the same for its repetitions, another for each entry of each push.
fn token(push: &str, key: &[u8], cells: &[MergedCell]) -> u128 {
    let timestamps: Vec<[u8; 8]> = cells.iter().map(|cell| cell.timestamp.to_be_bytes()).collect();
    let mut parts: Vec<&[u8]> = vec![push.as_bytes(), key];
    for (cell, timestamp) in cells.iter().zip(&timestamps) {
        parts.extend([cell.family.as_bytes(), &*cell.qualifier, timestamp.as_slice()]);
    }

    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_be_bytes());
        text.extend_from_slice(part);
    }
    xxh3_128(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i64) -> Bytes {
        Bytes::copy_from_slice(&value.to_be_bytes())
    }

    #[test]
    fn states_lead_from_before_to_after() {
        let between = |kind, before: Option<i64>, after: i64| {
            let before = before.map(number);
            state_between(kind, before.as_deref(), &number(after))
        };
        assert_eq!(between(Kind::Sum, None, 5), Some(number(5)));
        assert_eq!(between(Kind::Sum, Some(7), 5), Some(number(-2)));
        assert_eq!(between(Kind::Sum, Some(i64::MIN), i64::MAX), None);
        assert_eq!(between(Kind::Max, Some(7), 9), Some(number(9)));
        assert_eq!(between(Kind::Max, Some(7), 5), None);
        assert_eq!(between(Kind::Min, Some(7), 5), Some(number(5)));
        assert_eq!(between(Kind::Min, Some(7), 9), None);
        assert_eq!(state_between(Kind::Sum, Some(b"short"), &number(1)), None);
    }

    #[test]
    fn an_attempt_is_recognised_by_what_is_there() {
        let cell = |before: Option<i64>, after: i64| MergedCell {
            kind: Kind::Sum,
            family: "f".to_owned(),
            qualifier: "q".into(),
            timestamp: 0,
            before: before.map(number),
            after: number(after),
        };
        let row = MergeRow::new("p", &"r".into(), vec![cell(Some(2), 5)], 0).unwrap();
        let found = |value: i64| Row {
            key: "r".into(),
            cells: vec![Cell { family: "f".into(), qualifier: "q".into(), timestamp: 0, value: number(value) }],
        };
        assert_eq!(row.attempted(Some(&found(2))), Attempted::Missing);
        assert_eq!(row.attempted(Some(&found(5))), Attempted::Applied);
        assert!(matches!(row.attempted(Some(&found(8))), Attempted::Foreign(..)));
        assert!(matches!(row.attempted(None), Attempted::Foreign(_, None)));
        let first = MergeRow::new("p", &"r".into(), vec![cell(None, 5)], 0).unwrap();
        assert_eq!(first.attempted(None), Attempted::Missing);
        let again = MergeRow::new("p", &"r".into(), vec![cell(None, 5)], 9).unwrap();
        assert_eq!(
            first.entry.idempotency.unwrap().token,
            again.entry.idempotency.unwrap().token,
            "a repetition has the same token"
        );
    }
}
