//! Columns that the folders of a file name, as Hive and Spark write them: `site=A/date=2021-04-01/part-0.parquet`.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::error::ArrowError;

use crate::error::SourceError;
use crate::spec::SourceSpec;
use crate::value::{ColumnBuilder, ColumnPlan};

/// The value of a folder whose key is null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// A declared column that all rows of a file have in common, because its path names it.
#[derive(Debug, Clone)]
pub(crate) struct PathColumn {
    pub index: usize,
    /// Its value: an array of one row.
    value: ArrayRef,
}

impl PathColumn {
    /// The value as a column of `rows` rows.
    pub fn column(&self, rows: usize) -> Result<ArrayRef, ArrowError> {
        take(&self.value, &UInt32Array::from(vec![0; rows]), None)
    }
}

/// Keys and values of the folders of `path`, in its order; `None` for a null. A `%` and two digits stand for a byte.
pub(crate) fn path_values(path: &str) -> Vec<(String, Option<String>)> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let mut values = Vec::new();
    for (key, value) in folders.split('/').filter_map(|folder| folder.split_once('=')) {
        if !key.is_empty() {
            values.push((decoded(key), (value != NULL).then(|| decoded(value))));
        }
    }
    values
}

/// Values that the folders of `path`, such as `site=A`, give to declared columns, as one text; empty for none. A column that
/// the file itself has is named, too: only reading the file tells.
pub fn folder_values(spec: &SourceSpec, path: &str) -> String {
    let values = path_values(path).into_iter();
    let declared = values.filter(|(key, _)| spec.columns.iter().any(|column| column.name == *key));
    declared.map(|(key, value)| format!("{key}={value:?}/")).collect()
}

/// The declared columns that the file at `path` names in its path. `has` says which columns the file itself has: those win.
///
/// # Errors
/// [`SourceError::PathValue`] for a value that is none of the declared type.
pub(crate) fn path_columns(
    path: &str,
    columns: &[ColumnPlan],
    has: impl Fn(&str) -> bool,
) -> Result<Vec<PathColumn>, SourceError> {
    let values = path_values(path);
    let mut found = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        // Of equal keys the innermost folder counts.
        let value = values.iter().rev().find(|(key, _)| *key == column.name);
        let Some((_, value)) = value.filter(|_| column.reader.reads_folders() && !has(&column.name)) else { continue };

        let mut builder = ColumnBuilder::new(column, 1);
        match value {
            Some(value) => builder.push(value.as_bytes(), false).map_err(|reason| SourceError::PathValue {
                path: path.to_owned(),
                column: column.name.clone(),
                reason: reason.to_string(),
            })?,
            None => builder.push_null(),
        }
        let value = builder.finish().map_err(|source| SourceError::Arrow { path: path.to_owned(), source })?;
        found.push(PathColumn { index, value });
    }
    Ok(found)
}

/// `text` with `%20` and the like as the bytes that they stand for; as it is if that gives no UTF-8.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

impl SourceSpec {
    /// The keys of the folders of `path` that no column has and no pattern writes out, such as `site` of `site=A`.
    pub(crate) fn undeclared_keys(&self, path: &str) -> Vec<String> {
        let mut keys = Vec::new();
        for (key, value) in path_values(path) {
            let folder = format!("{key}={}", value.as_deref().unwrap_or(NULL));
            let day = format!("{key}={{day:");
            let mut parts = self.files.iter().flat_map(|file| file.split('/'));
            let is_column = self.columns.iter().any(|column| column.name == key);
            if !is_column && !parts.any(|part| part == folder || part.starts_with(&day)) {
                keys.push(key);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_columns() {
        let found = |path: &str| {
            let text = |(key, value): (String, Option<String>)| format!("{key}:{}", value.unwrap_or("null".to_owned()));
            path_values(path).into_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("lake/site=A/date=2021-04-01/part=0.parquet"), "site:A date:2021-04-01");
        assert_eq!(found("s3://b/x=a%20b%3Ac/y=__HIVE_DEFAULT_PARTITION__/z="), "x:a b:c y:null");
        assert_eq!(found("lake/=A/a%zz=%/p.csv"), "a%zz:%");
        assert_eq!(found("a.csv"), "");
    }

    #[test]
    fn keys_that_a_pattern_writes_out_are_known() {
        let files = vec!["lake/site=A/date={day:%F}/**/*.csv".to_owned()];
        let spec = SourceSpec { files, ..SourceSpec::default() };
        assert_eq!(spec.undeclared_keys("lake/site=A/date=2021-04-01/unit=3/p.csv"), ["unit"]);
    }
}
