//! Functions that read files: `read_csv('a/*.csv', delim = ';')`, `read_parquet`, `read_json`. DataFusion makes tables
//! of functions without waiting for a file, so a call becomes a table whose name is the call as written, and the catalog
//! reads the files when it looks that name up.

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, TableFactor,
    TableFunctionArgs, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::parser::Parser;
use tidetable_source::Format;

use crate::error::{SqlError, external};
use crate::syntax::dialect::TidetableDialect;

/// The form of the files that a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Csv,
    Parquet,
    Json,
}

impl FileFormat {
    /// The format of text that it is; `None` for Parquet.
    pub(crate) fn text(self) -> Option<Format> {
        match self {
            Self::Csv => Some(Format::Csv),
            Self::Json => Some(Format::Json),
            Self::Parquet => None,
        }
    }
}

/// Functions by name, also under the names that DuckDB has for them.
const FUNCTIONS: [(&str, FileFormat); 6] = [
    ("read_csv", FileFormat::Csv),
    ("read_csv_auto", FileFormat::Csv),
    ("read_parquet", FileFormat::Parquet),
    ("read_json", FileFormat::Json),
    ("read_json_auto", FileFormat::Json),
    ("read_ndjson", FileFormat::Json),
];

/// A call of a function that reads files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileFunction {
    pub(crate) format: FileFormat,
    /// The paths, URLs or patterns that the call names.
    pub(crate) paths: Vec<String>,
    /// Of CSV: what separates values; found in the file, if it is not given.
    pub(crate) delimiter: Option<char>,
    /// Of CSV: whether the first line has the names of the columns; found in the file, if it is not given.
    pub(crate) has_header: Option<bool>,
}

/// Replaces a call of such a function by a table with the call as its name.
pub(crate) fn replace_file_function(relation: &mut TableFactor) {
    let TableFactor::Table { name, args, .. } = relation else { return };
    if let (Some(given), Some(_)) = (&*args, format_of(name)) {
        let call = call_text(name, given);
        *name = ObjectName::from(vec![Ident::with_quote('"', call)]);
        *args = None;
    }
}

fn call_text(name: &ObjectName, given: &TableFunctionArgs) -> String {
    let given: Vec<String> = given.args.iter().map(ToString::to_string).collect();
    format!("{name}({})", given.join(", "))
}

fn format_of(name: &ObjectName) -> Option<FileFormat> {
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    FUNCTIONS.iter().find(|(known, _)| name.value.eq_ignore_ascii_case(known)).map(|(_, format)| *format)
}

/// Whether the name of a table stands for a call of a function that reads files, with whatever arguments.
pub(crate) fn is_call(table: &str) -> bool {
    FUNCTIONS.iter().any(|(name, _)| {
        let (start, rest) = table.split_at_checked(name.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(name) && rest.starts_with('(')
    })
}

impl FileFunction {
    /// A call that reads the files at `path`, a path or a pattern, and is given nothing else.
    pub(crate) fn of_path(format: FileFormat, path: String) -> Self {
        Self { format, paths: vec![path], delimiter: None, has_header: None }
    }

    /// Parses the name of a table that stands for a call; `None` for any other name.
    ///
    /// # Errors
    /// If the call has other arguments than paths and known options.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>> {
        if !is_call(text) {
            return Ok(None);
        }
        let parsed =
            Parser::new(&TidetableDialect).try_with_sql(text).and_then(|mut parser| parser.parse_table_factor());
        let parsed = parsed.map_err(|error| DataFusionError::SQL(Box::new(error), None))?;
        let TableFactor::Table { name, args: Some(given), .. } = &parsed else { return Ok(None) };
        let Some(format) = format_of(name) else { return Ok(None) };

        let mut call = Self { format, paths: Vec::new(), delimiter: None, has_header: None };
        for argument in &given.args {
            call.add(argument).ok_or_else(|| {
                let options = if format == FileFormat::Csv { ", and delim and header as options" } else { "" };
                external(SqlError::FileArgument { function: name.to_string(), found: argument.to_string(), options })
            })?;
        }
        if call.paths.is_empty() {
            let (function, found) = (name.to_string(), "nothing".to_owned());
            return Err(external(SqlError::FileArgument { function, found, options: "" }));
        }
        Ok(Some(call))
    }

    /// Takes an argument; `None` if it is not understood.
    fn add(&mut self, argument: &FunctionArg) -> Option<()> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, op: BinaryOperator::Eq, right })) => {
                let Expr::Identifier(name) = left.as_ref() else { return None };
                self.set(&name.value, right)
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => self.set(&name.value, value),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(list))) => {
                for path in &list.elem {
                    self.paths.push(text_of(path)?);
                }
                Some(())
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(path)) => {
                self.paths.push(text_of(path)?);
                Some(())
            }
            _ => None,
        }
    }

    fn set(&mut self, name: &str, value: &Expr) -> Option<()> {
        if self.format != FileFormat::Csv {
            return None;
        }
        match name.to_ascii_lowercase().as_str() {
            "delim" | "sep" | "delimiter" => {
                let text = text_of(value)?;
                let mut characters = text.chars();
                self.delimiter = characters.next().filter(|_| characters.next().is_none());
                self.delimiter.map(drop)
            }
            "header" => {
                let Expr::Value(ValueWithSpan { value: Value::Boolean(header), .. }) = value else { return None };
                self.has_header = Some(*header);
                Some(())
            }
            _ => None,
        }
    }
}

fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_back_from_their_text() {
        let call = FileFunction::parse("read_csv(['a.csv', 'b/*.txt'], delim = ';', header = false)").unwrap().unwrap();
        assert_eq!(call.paths, ["a.csv", "b/*.txt"]);
        assert_eq!((call.format, call.delimiter, call.has_header), (FileFormat::Csv, Some(';'), Some(false)));
        let call = FileFunction::parse("READ_PARQUET('it''s.parquet')").unwrap().unwrap();
        assert_eq!((call.paths, call.format), (vec!["it's.parquet".to_owned()], FileFormat::Parquet));
        for other in ["readings", "read_csv", "read_csv.csv", "'read_csv(x)'"] {
            assert_eq!(FileFunction::parse(other).unwrap(), None, "{other}");
        }
        for wrong in ["read_csv(1)", "read_parquet('a', delim = ';')", "read_csv()", "read_csv('a', skip = 1)"] {
            let error = FileFunction::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("takes paths"), "{error}");
        }
    }
}
