//! Completion at the prompt: keywords, functions, tables, columns.

use std::cell::OnceCell;

use arrow::array::AsArray;
use futures::TryStreamExt;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use tidetable_sql::as_written;

use crate::commands::sql::run::StatementRunner;
use crate::error::CliError;

const KEYWORDS: &str = "\
    DESCRIBE SUMMARIZE SELECT FROM WHERE GROUP BY ORDER LIMIT OFFSET HAVING DISTINCT AS AND OR NOT IN IS NULL \
    BETWEEN LIKE CASE WHEN THEN ELSE END JOIN LEFT RIGHT FULL INNER CROSS ON USING UNION ALL EXCEPT INTERSECT WITH \
    EXPLAIN ANALYZE CAST TIMESTAMP INTERVAL ASC DESC";

/// Completes the word before the cursor with keywords, functions, tables and columns.
pub(crate) struct Words<'a> {
    runner: &'a StatementRunner<'a>,
    /// Loaded on first use.
    known: OnceCell<Vec<String>>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(runner: &'a StatementRunner<'a>) -> Self {
        Self { runner, known: OnceCell::new() }
    }

    /// Names of functions, tables and columns. Empty for an unreadable store; its queries report why.
    fn known(&self) -> &[String] {
        self.known.get_or_init(|| self.look().unwrap_or_default())
    }

    fn look(&self) -> Result<Vec<String>, CliError> {
        let session = self.runner.session("")?;
        let state = session.context().state();
        let mut names: Vec<String> = KEYWORDS.split(' ').map(str::to_owned).collect();
        let functions = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        names.extend(functions.map(|name| as_written(name)));

        let query = "SELECT table_schema, table_name, column_name FROM information_schema.columns \
                     WHERE table_schema IN ('records', 'cells', 'rows', 'exports', 'runs')";
        let batches = self.runner.runtime.block_on(async {
            let rows = session.stream(query).await?;
            Ok::<_, CliError>(rows.try_collect::<Vec<_>>().await.map_err(tidetable_sql::SqlError::from)?)
        })?;

        for batch in &batches {
            let columns: Vec<_> = batch.columns().iter().map(|column| column.as_string::<i32>()).collect();
            let [schemas, tables, columns] = columns.as_slice() else { continue };
            for row in 0..batch.num_rows() {
                let (schema, table) = (schemas.value(row), tables.value(row));
                names.push(if schema == "records" { table.to_owned() } else { format!("{schema}.{table}") });
                names.push(columns.value(row).to_owned());
            }
        }

        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

impl Completer for Words<'_> {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or(line);
        let of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '@');
        let start = before.rfind(|c| !of_word(c)).map_or(0, |end| end + 1);
        let word = before.get(start..).unwrap_or_default();
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        let begins = |name: &&String| name.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
        let pair = |name: &String| Pair { display: name.clone(), replacement: name.clone() };
        Ok((start, self.known().iter().filter(begins).map(pair).collect()))
    }
}

impl Validator for Words<'_> {}

impl Hinter for Words<'_> {
    type Hint = String;
}

impl Highlighter for Words<'_> {}

impl Helper for Words<'_> {}
