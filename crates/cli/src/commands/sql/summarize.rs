//! `SUMMARIZE t`: statistics for each column of a table or query.

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use futures::TryStreamExt;
use tidetable_sql::{Session, SqlError, quoted_name};

use crate::error::CliError;
use crate::objects;
use crate::output::{ResultRows, row, value_text};

/// Number of aggregates for each column.
const OF_EACH: usize = 4;

/// The table or query of a `SUMMARIZE` statement.
pub(crate) fn asked(statement: &str) -> Option<&str> {
    let (word, of) = statement.trim().split_once(char::is_whitespace)?;
    word.eq_ignore_ascii_case("summarize").then(|| of.trim()).filter(|of| !of.is_empty())
}

/// The query for all rows.
pub(crate) fn source(of: &str) -> String {
    let first = of.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    match first.to_ascii_lowercase().as_str() {
        "select" | "with" | "values" => of.to_owned(),
        _ => format!("SELECT * FROM {of}"),
    }
}

/// Reads all rows once. Distinct counts are approximate.
pub(crate) async fn summary(session: &Session, of: &str) -> Result<ResultRows, CliError> {
    let source = source(of);
    let schema = session.sql(&source).await?.schema().as_arrow().clone();
    let mut asked = vec!["count(*)".to_owned()];
    for field in schema.fields() {
        let (column, kind) = (quoted_name(field.name()), field.data_type());
        let [distinct, least, most] = [
            (!kind.is_nested(), format!("approx_distinct(CAST({column} AS TEXT))")),
            (is_ordered(kind), format!("min({column})")),
            (is_ordered(kind), format!("max({column})")),
        ]
        .map(|(can_be_asked, what)| if can_be_asked { what } else { "NULL".to_owned() });
        asked.extend([format!("count({column})"), distinct, least, most]);
    }

    let columns: Vec<String> = asked.iter().enumerate().map(|(at, what)| format!("{what} AS c{at}")).collect();
    let query = format!("SELECT {} FROM ({source}) AS summarized", columns.join(", "));

    let stream = session.stream(&query).await?;
    let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(SqlError::from)?;

    let mut rows = ResultRows::of(objects::SUMMARY);
    let Some(found) = batches.first().filter(|batch| batch.num_rows() > 0) else { return Ok(rows) };

    let all = number(found, 0)?.unwrap_or_default();
    for (at, field) in schema.fields().iter().enumerate() {
        let first = 1 + at * OF_EACH;
        let count = number(found, first)?.unwrap_or_default();
        rows.push(row![
            field.name(),
            field.data_type().to_string(),
            count,
            all - count,
            number(found, first + 1)?,
            text(found, first + 2)?,
            text(found, first + 3)?
        ]);
    }
    Ok(rows)
}

/// The value of a column in the first row, as text.
fn text(found: &RecordBatch, column: usize) -> Result<Option<String>, CliError> {
    let column = found.columns().get(column);
    Ok(column.map(|column| value_text(column.as_ref(), 0)).transpose()?.flatten())
}

/// The value of a column in the first row, if it is a whole number.
fn number(found: &RecordBatch, column: usize) -> Result<Option<i64>, CliError> {
    Ok(text(found, column)?.and_then(|text| text.parse().ok()))
}

fn is_ordered(kind: &DataType) -> bool {
    !kind.is_nested() && !matches!(kind, DataType::Null | DataType::FixedSizeBinary(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_summarized_is_a_table_or_a_query() {
        assert_eq!(asked("SUMMARIZE  SENSOR"), Some("SENSOR"));
        assert_eq!(asked("summarize select 1"), Some("select 1"));
        assert_eq!(asked("select summarize"), None);
        assert_eq!(asked("summarize "), None);
        assert_eq!(source("cells.T"), "SELECT * FROM cells.T");
        assert_eq!(source("select 1"), "select 1");
    }
}
