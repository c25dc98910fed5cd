//! What a file is to hold, and the properties that all Parquet files have.

use arrow::datatypes::SchemaRef;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

use crate::file::cbt::CellColumn;
use crate::file::format::FileFormat;

const CREATED_BY: &str = "tidetable";

/// Schema, format and properties of a file.
pub(crate) struct FileSpec<'a> {
    pub(crate) format: FileFormat,
    pub(crate) schema: SchemaRef,
    /// The sort order of its rows.
    pub(crate) sorting: Vec<SortingColumn>,
    /// Key-value metadata, if the format has a place for it.
    pub(crate) metadata: &'a [(&'a str, &'a str)],
    /// The columns, for [`FileFormat::CbtCsv`].
    pub(crate) columns: Vec<CellColumn>,
}

/// Writer properties of every Parquet file.
pub(crate) fn parquet_properties(metadata: &[(&str, &str)]) -> WriterPropertiesBuilder {
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).set_key_value_metadata(Some(pairs.collect()))
}
