//! What queries read, as a table.

use crate::error::PageError;
use crate::figures::{bytes, grouped, measure};
use crate::view::{Answer, QueryMatrix, Shape};

/// The matrix as text.
pub(super) struct QueryTable {
    pub(super) queries: Vec<QueryText>,
    pub(super) rows: Vec<QueryLine>,
}

/// The head of a column: a query, and how often it is asked.
pub(super) struct QueryText {
    pub(super) name: String,
    pub(super) clause: String,
    pub(super) rate: String,
}

/// A line of the table: what a layout answers to each query.
pub(super) struct QueryLine {
    pub(super) layout: String,
    pub(super) fields: Vec<AnswerText>,
}

/// What a query reads of a layout, as text.
pub(super) struct AnswerText {
    pub(super) bytes: String,
    /// The 95th percentile, where it is more.
    pub(super) worst: String,
    pub(super) best: bool,
    pub(super) how: String,
    pub(super) rows: String,
    pub(super) returned: String,
    pub(super) error: String,
}

impl QueryTable {
    /// The table of a matrix.
    pub(super) fn of(matrix: &QueryMatrix) -> Result<Self, PageError> {
        let columns = matrix.queries.len();
        for row in &matrix.rows {
            if row.answers.len() != columns {
                let (layout, found) = (row.layout.clone(), row.answers.len());
                return Err(PageError::Row { layout, found, columns });
            }
        }
        let best: Vec<Option<u64>> = (0..columns).map(|at| best(matrix, at)).collect();
        let queries = matrix.queries.iter().map(|query| {
            let rate = query.per_second.map(|rate| format!("{} a second, ", measure(rate))).unwrap_or_default();
            let draws = if query.draws == 1 { "1 draw".to_owned() } else { format!("{} draws", grouped(query.draws)) };
            QueryText { name: query.name.clone(), clause: query.clause.clone(), rate: format!("{rate}{draws}") }
        });
        let rows = matrix.rows.iter().map(|row| QueryLine {
            layout: row.layout.clone(),
            fields: row.answers.iter().zip(&best).map(|(answer, best)| text(answer, *best, row.sampled)).collect(),
        });
        Ok(Self { queries: queries.collect(), rows: rows.collect() })
    }
}

/// Fewest bytes read for a query by a layout that answers it well; none if all read the same.
fn best(matrix: &QueryMatrix, at: usize) -> Option<u64> {
    let answers: Vec<&Answer> = matrix.rows.iter().filter_map(|row| row.answers.get(at)).collect();
    let good = answers.iter().filter(|answer| answer.error.is_none()).map(|answer| answer.bytes.seen).min()?;
    answers.iter().any(|answer| answer.bytes.seen != good).then_some(good)
}

fn text(answer: &Answer, best: Option<u64>, sampled: bool) -> AnswerText {
    let mark = if sampled { "~" } else { "" };
    let how = match (answer.shape, answer.ranges) {
        (Shape::Point, 0 | 1) => "one row by key".to_owned(),
        (Shape::Point, keys) => format!("{} rows by key", grouped(keys)),
        (Shape::Range, 0 | 1) => "one range".to_owned(),
        (Shape::Range, ranges) => format!("{} ranges", grouped(ranges)),
        (Shape::Scan, _) => "scan of every row".to_owned(),
    };
    let [rows, cells] = [(answer.rows.seen, "row"), (answer.cells.seen, "cell")]
        .map(|(number, noun)| format!("{mark}{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" }));

    let worst = if answer.bytes_p95 > answer.bytes.seen {
        format!("p95 {mark}{}", bytes(answer.bytes_p95))
    } else {
        String::new()
    };
    let returned = match (answer.bytes.seen, answer.bytes.returned) {
        (0, _) => "nothing read".to_owned(),
        (seen, returned) => format!("{} % returned", measure_percent(returned as f64 / seen as f64)),
    };

    AnswerText {
        bytes: format!("{mark}{}", bytes(answer.bytes.seen)),
        worst,
        best: answer.error.is_none() && best == Some(answer.bytes.seen),
        how,
        rows: format!("{rows}, {cells}"),
        returned,
        error: answer.error.clone().unwrap_or_default(),
    }
}

/// A part of one in per cent, with a decimal below ten.
fn measure_percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Query, QueryRow, Seen};

    #[test]
    fn a_wrong_answer_is_never_the_best() {
        let answer = |seen, error: Option<&str>| Answer {
            bytes: Seen { seen, returned: seen / 20 },
            bytes_p95: seen,
            error: error.map(str::to_owned),
            ..Answer::default()
        };
        let row = |layout: &str, answer| QueryRow { layout: layout.to_owned(), sampled: true, answers: vec![answer] };
        let matrix = QueryMatrix {
            queries: vec![Query { per_second: Some(50.0), draws: 1, ..Query::default() }],
            rows: vec![row("A", answer(10, Some("a scan"))), row("B", answer(2000, None))],
        };
        let table = QueryTable::of(&matrix).unwrap();
        let fields: Vec<&AnswerText> = table.rows.iter().flat_map(|row| &row.fields).collect();
        assert_eq!((fields[0].best, fields[1].best), (false, true));
        assert_eq!((fields[1].bytes.as_str(), fields[1].returned.as_str()), ("~1.95 KiB", "5.0 % returned"));
        assert_eq!(
            (table.queries[0].rate.as_str(), fields[0].how.as_str()),
            ("50 a second, 1 draw", "scan of every row")
        );
    }
}
