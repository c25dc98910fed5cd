//! Statements that write: SQL only reads, and the refusal names the command that does what was meant.

use datafusion::error::Result;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::error::{SqlError, external};

/// Refuses statements for which there is a command.
///
/// # Errors
/// [`SqlError::OnlyReads`].
pub(crate) fn check_reads(statement: &Statement) -> Result<()> {
    let written = match statement {
        Statement::Explain(explain) => return check_reads(&explain.statement),
        Statement::CopyTo(_) => {
            Some(("COPY", "`tidetable sql -c QUERY -O FILE` writes the rows of a query into a file"))
        }
        Statement::Statement(statement) => command_for(statement),
        _ => None,
    };
    match written {
        Some((statement, instead)) => Err(external(SqlError::OnlyReads { statement, instead })),
        None => Ok(()),
    }
}

/// The first word of a statement that writes, and what to do instead.
fn command_for(statement: &ast::Statement) -> Option<(&'static str, &'static str)> {
    let (word, instead) = match statement {
        ast::Statement::Delete { .. } => (
            "DELETE",
            "`tidetable delete TABLE --row KEY` deletes a row, or a column of it, and `tidetable drop-rows TABLE --prefix PREFIX` all \
             rows whose keys begin with a prefix",
        ),
        ast::Statement::Truncate { .. } => {
            ("TRUNCATE", "`tidetable drop-rows TABLE --prefix PREFIX` deletes all rows whose keys begin with a prefix")
        }
        ast::Statement::Update { .. } => {
            ("UPDATE", "correct the row in its file, and `tidetable run JOB` rebuilds the days that it touches")
        }
        ast::Statement::Merge { .. } => ("MERGE", LOADED),
        ast::Statement::Insert { .. } => ("INSERT", LOADED),
        ast::Statement::Copy { .. } => ("COPY", LOADED),
        ast::Statement::CreateTable { .. } => ("CREATE TABLE", MADE),
        ast::Statement::CreateView { .. } => ("CREATE VIEW", MADE),
        ast::Statement::Install { .. } | ast::Statement::LoadData { .. } | ast::Statement::Load { .. } => {
            ("INSTALL", BUILT_IN)
        }
        ast::Statement::Pragma { .. } => ("PRAGMA", BUILT_IN),
        ast::Statement::AttachDatabase { .. } | ast::Statement::AttachDuckDBDatabase { .. } => ("ATTACH", BUILT_IN),
        _ => return None,
    };
    Some((word, instead))
}

const BUILT_IN: &str = "files are read by their names, as in FROM 'x.parquet', formats and functions are built in, and settings are options \
                        of `tidetable sql`";

const LOADED: &str =
    "`tidetable run JOB` loads rows from files, and `tidetable new JOB --from FILE` proposes such a job";
const MADE: &str = "`tidetable run JOB` makes the tables that its job file declares, also of a query; WITH names a query for one \
                    statement, and CREATE EXTERNAL TABLE a file";

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn refusals_name_a_command() {
        for (query, command) in [
            ("DELETE FROM t WHERE a = 1", "tidetable delete TABLE --row KEY"),
            ("TRUNCATE TABLE t", "tidetable drop-rows"),
            ("UPDATE t SET a = 1", "tidetable run JOB"),
            ("INSERT INTO t VALUES (1)", "tidetable run JOB"),
            ("EXPLAIN INSERT INTO t VALUES (1)", "tidetable new JOB --from FILE"),
            ("COPY t TO 'x.csv'", "tidetable sql -c QUERY -O FILE"),
            ("CREATE TABLE t AS SELECT 1", "tidetable run JOB"),
            ("CREATE VIEW t AS SELECT 1", "tidetable run JOB"),
        ] {
            let statement = DFParser::parse_sql(query).unwrap().pop_front().unwrap();
            let told = check_reads(&statement).unwrap_err().to_string();
            assert!(told.contains(command) && told.contains("not supported"), "{query}: {told}");
        }
        for query in ["SELECT 1", "EXPLAIN SELECT 1", "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x.csv'"] {
            check_reads(&DFParser::parse_sql(query).unwrap()[0]).unwrap();
        }
    }
}
