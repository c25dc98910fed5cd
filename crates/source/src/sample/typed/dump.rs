//! What a dump of Bigtable holds, for a proposal of its job.

use std::collections::BTreeSet;

use arrow::array::AsArray;
use tidetable_layout::FieldType;

use crate::blocks::OpenedBlocks;
use crate::dump::is_dump;
use crate::error::SourceError;
use crate::format::Format;
use crate::spec::{ColumnSpec, SourceSpec};
use crate::storage::{InputFile, Storage};

/// Parts of a file whose cells are looked at.
const PARTS: usize = 64;

/// What the beginning of a dump holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpSample {
    /// The format as a source declares it.
    pub format: Format,
    /// The ids of the families of its cells, in order.
    pub families: Vec<String>,
    /// The number of cells that were looked at.
    pub cells: u64,
    /// Whether these are all cells of the file.
    pub whole: bool,
}

impl Storage {
    /// Looks at a file as a dump of Bigtable; `None` if it is none.
    ///
    /// # Errors
    /// Those of opening and reading the file.
    pub fn dump_sample(&self, input: &InputFile) -> Result<Option<DumpSample>, SourceError> {
        let Some(format) = self.dump_format(input)? else { return Ok(None) };
        let spec = SourceSpec {
            format: Some(format),
            columns: vec![
                ColumnSpec::new("family", FieldType::Text),
                ColumnSpec::new("timestamp", FieldType::Timestamp),
                ColumnSpec::new("value", FieldType::Text),
            ],
            time: "timestamp".to_owned(),
            ..SourceSpec::default()
        };
        let input = input.clone().with_format(format);
        let mut reader = self.open(&spec, &input)?;
        let parser = reader.parser();

        let mut families = BTreeSet::new();
        let mut sample = DumpSample { format, families: Vec::new(), cells: 0, whole: true };
        for part in 0.. {
            let Some(chunk) = reader.next().transpose()? else { break };
            if part == PARTS {
                sample.whole = false;
                break;
            }
            let batch = parser.parse(chunk)?.batch;
            sample.cells += batch.num_rows() as u64;
            let Some(names) = batch.column_by_name("family").and_then(|names| names.as_string_opt::<i32>()) else {
                continue;
            };
            for name in names.iter().flatten() {
                if !families.contains(name) {
                    families.insert(name.to_owned());
                }
            }
        }
        sample.families = families.into_iter().collect();
        Ok(Some(sample))
    }

    /// The format of a dump that a file has, by its schema; by its two lines of columns if its name ends with `.cbt.csv`.
    fn dump_format(&self, input: &InputFile) -> Result<Option<Format>, SourceError> {
        match input.format {
            Format::Parquet | Format::BigtableParquet => {
                Ok(is_dump(self.parquet(input)?.schema()).then_some(Format::BigtableParquet))
            }
            Format::Avro | Format::BigtableAvro => {
                let mut blocks = self.blocks(input)?;
                let opened = OpenedBlocks::open(&mut blocks, Format::Avro)?;
                Ok(is_dump(opened.schema()).then_some(Format::BigtableAvro))
            }
            Format::CbtCsv => Ok(Some(Format::CbtCsv)),
            Format::Csv if input.path.to_ascii_lowercase().contains(".cbt.csv") => Ok(Some(Format::CbtCsv)),
            Format::Csv | Format::Json | Format::Arrow => Ok(None),
        }
    }
}
