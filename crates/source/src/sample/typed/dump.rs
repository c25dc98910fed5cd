//! What a dump of Bigtable holds, for a proposal of its job.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::TimestampMicrosecondType;
use tidetable_layout::FieldType;

use crate::error::SourceError;
use crate::format::Format;
use crate::spec::{ColumnSpec, SourceSpec};
use crate::storage::{InputFile, Storage, check_dump, last_by_name};

/// Parts of the files of a dump whose cells are looked at: one of each file at least.
const PARTS: usize = 128;

/// What the files of a dump hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpSample {
    /// The format as a source declares it.
    pub format: Format,
    /// The families of its cells, in order.
    pub families: Vec<DumpedFamily>,
    /// The number of cells that were looked at.
    pub cells: u64,
    /// Whether these are all cells of all files.
    pub whole: bool,
    /// Whether a timestamp has microseconds.
    pub has_micros: bool,
}

/// A family of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedFamily {
    /// Its name in Bigtable.
    pub id: String,
    /// Whether all values have eight bytes, as integers have, and sums.
    pub has_eight_bytes: bool,
}

impl Storage {
    /// Looks at all files of the newest dump of Bigtable among `inputs`; `None` if the last of them by name are no dump.
    ///
    /// # Errors
    /// [`SourceError::DumpIncomplete`] and [`SourceError::DumpsMixed`], and those of opening and reading files.
    pub fn dump_sample(&self, inputs: &[InputFile]) -> Result<Option<DumpSample>, SourceError> {
        let (newest, _) = last_by_name(inputs.to_vec());
        let Some(first) = newest.first() else { return Ok(None) };
        let Some(format) = self.dump_format(first)? else { return Ok(None) };
        check_dump(&newest)?;

        let mut families = BTreeMap::new();
        let mut sample = DumpSample { format, families: Vec::new(), cells: 0, whole: true, has_micros: false };
        let parts = (PARTS / newest.len()).max(1);
        for input in newest {
            self.add_dump_file(&input.with_format(format), parts, &mut families, &mut sample)?;
        }
        let families = families.into_iter();
        sample.families = families.map(|(id, has_eight_bytes)| DumpedFamily { id, has_eight_bytes }).collect();
        Ok(Some(sample))
    }

    /// Adds the first `parts` of a file to `sample`, and to `families` whether all their values have eight bytes.
    fn add_dump_file(
        &self,
        input: &InputFile,
        parts: usize,
        families: &mut BTreeMap<String, bool>,
        sample: &mut DumpSample,
    ) -> Result<(), SourceError> {
        let spec = SourceSpec {
            format: Some(input.format),
            columns: vec![
                ColumnSpec::new("family", FieldType::Text),
                ColumnSpec::new("timestamp", FieldType::Timestamp),
                ColumnSpec::new("value", FieldType::Text),
            ],
            time: "timestamp".to_owned(),
            ..SourceSpec::default()
        };
        let mut reader = self.open(&spec, input)?;
        let parser = reader.parser();

        for part in 0.. {
            let Some(chunk) = reader.next().transpose()? else { break };
            if part == parts {
                sample.whole = false;
                break;
            }
            let batch = parser.parse(chunk)?.batch;
            sample.cells += batch.num_rows() as u64;
            let column = |name: &str| batch.column_by_name(name);
            if let Some(times) =
                column("timestamp").and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>())
            {
                sample.has_micros |= times.iter().flatten().any(|time| time % 1000 != 0);
            }

            let [names, values] =
                ["family", "value"].map(|name| column(name).and_then(|texts| texts.as_string_opt::<i32>()));
            for (name, value) in names.into_iter().flatten().zip(values.into_iter().flatten()) {
                let (Some(name), Some(value)) = (name, value) else { continue };
                // In hexadecimal.
                let has_eight_bytes = value.len() == 16;
                match families.get_mut(name) {
                    Some(all) => *all &= has_eight_bytes,
                    None => {
                        families.insert(name.to_owned(), has_eight_bytes);
                    }
                }
            }
        }
        Ok(())
    }
}
