//! Derives key ranges from filters on `row_key`.
//!
//! A range may contain keys that do not pass: DataFusion filters again.

use arrow::datatypes::DataType;
use datafusion::logical_expr::expr::{BinaryExpr, InList, Like, ScalarFunction};
use datafusion::logical_expr::{Between, Expr, Operator};
use datafusion::scalar::ScalarValue;
use tidetable_functions::{BYTES_LIKE, STARTS_WITH};
use tidetable_layout::KeyRange;

/// The key ranges that pass all `filters` on `column`; all keys without `push_down`.
pub(crate) fn keys_of(filters: &[Expr], column: &str, push_down: bool) -> Vec<KeyRange> {
    let narrowing = filters.iter().filter(|_| push_down).filter_map(|filter| key_ranges(filter, column));
    narrowing.fold(vec![KeyRange::all()], |keys, ranges| intersect(&keys, &ranges))
}

/// The key ranges that can pass `filter` on the column `name`, ascending and disjoint. `None` if it concerns something
/// else, or negates.
pub(crate) fn key_ranges(filter: &Expr, name: &str) -> Option<Vec<KeyRange>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (key_ranges(left, name), key_ranges(right, name)) {
                (Some(left), Some(right)) => Some(intersect(&left, &right)),
                (left, right) => left.or(right),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut ranges = key_ranges(left, name)?;
            ranges.extend(key_ranges(right, name)?);
            Some(disjoint(ranges))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match literal(right) {
            Some(value) if is_key(left, name) => compare(*op, value),
            Some(_) => None,
            None => is_key(right, name).then(|| compare(op.swap()?, literal(left)?)).flatten(),
        },
        Expr::Between(Between { expr, negated: false, low, high }) if is_key(expr, name) => {
            let low = compare(Operator::GtEq, literal(low)?)?;
            Some(intersect(&low, &compare(Operator::LtEq, literal(high)?)?))
        }
        Expr::InList(InList { expr, list, negated: false }) if is_key(expr, name) => {
            let keys = list.iter().map(|value| literal(value).map(one_key));
            keys.collect::<Option<Vec<_>>>().map(disjoint)
        }
        Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false })
            if is_key(expr, name) =>
        {
            matching(literal(pattern)?, b'\\')
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), args.as_slice()) {
            (BYTES_LIKE, [expr, pattern, escape, Expr::Literal(ScalarValue::Boolean(Some(false)), _)])
                if is_key(expr, name) =>
            {
                let escape = literal(escape).and_then(|escape| escape.first().copied());
                matching(literal(pattern)?, escape.unwrap_or(b'\\'))
            }
            (STARTS_WITH, [expr, prefix]) if is_key(expr, name) => Some(vec![KeyRange::prefix(literal(prefix)?)]),
            _ => None,
        },
        Expr::Alias(alias) => key_ranges(&alias.expr, name),
        _ => None,
    }
}

/// The keys that begin as a pattern of `LIKE` does. `escape` makes a wildcard plain; what is before it is a prefix in any case.
fn matching(pattern: &[u8], escape: u8) -> Option<Vec<KeyRange>> {
    let fixed = pattern.split(|byte| matches!(byte, b'%' | b'_') || *byte == escape).next()?;
    Some(vec![KeyRange::prefix(fixed)])
}

/// The keys that are in both lists of ranges.
fn intersect(a: &[KeyRange], b: &[KeyRange]) -> Vec<KeyRange> {
    let pairs = a.iter().flat_map(|left| b.iter().map(move |right| (left, right)));
    let common = pairs.map(|(left, right)| KeyRange {
        start: left.start.clone().max(right.start.clone()),
        end: match (&left.end, &right.end) {
            (Some(left), Some(right)) => Some(left.clone().min(right.clone())),
            (end, None) | (None, end) => end.clone(),
        },
    });
    disjoint(common.collect())
}

/// Sorts ranges and merges those that touch or overlap.
fn disjoint(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| range.end.as_ref().is_none_or(|end| range.start < *end));
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| range.start <= *end) => {
                let longer = match (&last.end, &range.end) {
                    (Some(end), Some(other)) => Some(end.max(other).clone()),
                    _ => None,
                };
                last.end = longer;
            }
            _ => out.push(range),
        }
    }
    out
}

/// Whether `expr` is the column `name`, or a cast of it to text.
fn is_key(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Column(column) => column.name == name,
        Expr::Cast(cast) => sorts_by_bytes(cast.field.data_type()) && is_key(&cast.expr, name),
        Expr::TryCast(cast) => sorts_by_bytes(cast.field.data_type()) && is_key(&cast.expr, name),
        Expr::Alias(alias) => is_key(&alias.expr, name),
        _ => false,
    }
}

/// Whether values of `kind` sort by their bytes, as text does: a cast to it preserves the order of keys.
fn sorts_by_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::BinaryView | DataType::LargeBinary
    )
}

fn literal(expr: &Expr) -> Option<&[u8]> {
    match expr {
        Expr::Literal(value, _) => match value {
            ScalarValue::Binary(Some(bytes))
            | ScalarValue::BinaryView(Some(bytes))
            | ScalarValue::LargeBinary(Some(bytes)) => Some(bytes),
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
                Some(text.as_bytes())
            }
            _ => None,
        },
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

/// The keys that pass `key_column op key`; `None` for operators that compare otherwise.
fn compare(op: Operator, key: &[u8]) -> Option<Vec<KeyRange>> {
    let range = match op {
        Operator::Eq => one_key(key),
        Operator::Lt => KeyRange { start: Vec::new(), end: Some(key.to_vec()) },
        Operator::LtEq => KeyRange { start: Vec::new(), end: Some(after(key)) },
        Operator::Gt => KeyRange { start: after(key), end: None },
        Operator::GtEq => KeyRange { start: key.to_vec(), end: None },
        _ => return None,
    };
    Some(disjoint(vec![range]))
}

fn one_key(key: &[u8]) -> KeyRange {
    KeyRange { start: key.to_vec(), end: Some(after(key)) }
}

/// The least key greater than `key`: `key` and a zero byte.
fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    fn range(start: &str, end: Option<&str>) -> KeyRange {
        KeyRange { start: start.into(), end: end.map(Into::into) }
    }

    fn ranges(expr: Expr) -> Option<Vec<KeyRange>> {
        key_ranges(&expr, "row_key")
    }

    #[test]
    fn comparisons_and_prefixes_become_ranges() {
        assert_eq!(ranges(col("row_key").eq(lit("a"))), Some(vec![range("a", Some("a\0"))]));
        assert_eq!(ranges(lit("a").lt(col("row_key"))), Some(vec![range("a\0", None)]));
        let text = || cast(col("row_key"), DataType::Utf8);
        assert_eq!(ranges(text().like(lit("ab%c"))), Some(vec![range("ab", Some("ac"))]));
        assert_eq!(ranges(col("family").eq(lit("a"))), None);
    }

    #[test]
    fn ranges_combine_without_overlap() {
        let key = || col("row_key");
        let both = key().gt_eq(lit("b")).and(key().lt(lit("d")));
        assert_eq!(ranges(both), Some(vec![range("b", Some("d"))]));
        let either = key().lt(lit("c")).or(key().lt(lit("b"))).or(key().eq(lit("x")));
        assert_eq!(ranges(either), Some(vec![range("", Some("c")), range("x", Some("x\0"))]));
        assert_eq!(ranges(key().eq(lit("a")).and(key().eq(lit("b")))), Some(vec![]));
        assert_eq!(ranges(key().eq(lit("a")).or(col("family").eq(lit("b")))), None);
    }
}
