//! What to write instead of forms of other systems, DuckDB above all, that are not read.

/// Statements by their first word.
const STATEMENTS: [(&str, &str); 4] = [
    ("attach", "files are read by their names, as in FROM 'x.parquet'"),
    ("pivot", "write FROM t PIVOT (sum(v) FOR k IN ('a', 'b'))"),
    ("unpivot", "write FROM t UNPIVOT (v FOR k IN (a, b))"),
    (".", "words that begin with a point are for the prompt: `tidetable sql` without a query"),
];

/// Forms inside of a statement: letters in lower case, one blank between words.
const FORMS: [(&str, &str); 6] = [
    ("using sample", "write WHERE random() < 0.1, or ORDER BY random() LIMIT 10"),
    ("tablesample", "write WHERE random() < 0.1, or ORDER BY random() LIMIT 10"),
    ("**", "write power(a, b), or a ^ b"),
    ("select * like", "write * ILIKE 'k%', or name the columns"),
    ("positional join", "number the rows of both by row_number() OVER (), and join by the number"),
    ("filter (", "write FILTER (WHERE ..)"),
];

/// Functions that have no equal.
const FUNCTIONS: [(&str, &str); 4] = [
    ("columns", "name the columns, or leave some out: * EXCLUDE (a, b), * ILIKE 'k%'"),
    ("epoch_ms", "write CAST(date_part('epoch', ts) * 1000 AS BIGINT)"),
    ("struct_pack", "write named_struct('a', 1)"),
    ("current_setting", "settings are options of the command: `tidetable sql --help`"),
];

/// What to write instead of a statement that the parser refuses.
pub(crate) fn for_statement(query: &str) -> Option<&'static str> {
    let words = query.to_ascii_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    // What is read is no form to be told of.
    let words = words.replace("filter (where", "");
    let statement = STATEMENTS.iter().find(|(word, _)| words.starts_with(word));
    let form = || FORMS.iter().find(|(form, _)| words.contains(form));
    statement.or_else(form).map(|(_, advice)| *advice)
}

/// What to write instead of a function that the session does not have.
pub(crate) fn for_function(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_forms_have_one_that_is_read() {
        for query in [
            "PIVOT t ON k USING sum(v)",
            "\n unpivot t on a",
            ".tables",
            "select * from t  USING\nSAMPLE 1",
            "select 2 ** 3",
        ] {
            assert!(for_statement(query).is_some(), "{query}");
        }
        assert_eq!(for_statement("select sum(v) FILTER (WHERE v > 1) fro t"), None);
        assert!(for_function("COLUMNS").is_some() && for_function("sum").is_none());
    }
}
