//! `tidetable describe --report`: a table as a page.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tidetable_layout::spec::{ColumnSpec, PackedSpec};
use tidetable_layout::time::window_name;
use tidetable_page::view::{FamilyText, TablePage, VersionText, WindowBar};
use tidetable_runner::runtime;
use tidetable_store::leave_out;
use tidetable_store::{Snapshot, Store, Version};

use super::data_by_time::by_time;
use super::inspect::column_name;
use crate::commands::sums;
use crate::error::CliError;
use crate::output::values::{bytes, count};

/// Most row keys shown.
const KEYS: usize = 6;
/// Most versions shown, the newest.
const VERSIONS: usize = 50;

/// The page of a table. `data` is what `--output json` prints.
pub(super) fn of(store: &Store, snapshot: &Snapshot, data: Value) -> Result<TablePage, CliError> {
    let version = snapshot.version();
    let spec = &version.table.spec;
    let [rows, cells, size] = sums(version.ssts());
    let fields = snapshot.layout().records_schema();

    Ok(TablePage {
        title: format!("Table {}", spec.name),
        subtitle: format!(
            "Of job {}, version {}: {}, {}, {} in {}.",
            version.table.job,
            version.number,
            count(rows, "row"),
            count(cells, "cell"),
            bytes(size),
            count(version.ssts().count() as u64, "file")
        ),
        command: format!("tidetable describe {} --report", spec.name),
        row_key: spec.row_key.clone(),
        keys: keys(version),
        families: families(version),
        fields: fields.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
        bytes: bytes_by_column(snapshot)?,
        by_time: runtime()?.block_on(by_time(store, snapshot))?,
        windows: windows(version),
        versions: versions(store, &spec.name)?,
        data,
    })
}

/// First keys of files, and the last key of all.
fn keys(version: &Version) -> Vec<String> {
    let firsts: BTreeSet<&[u8]> = version.ssts().map(|sst| sst.first_key.as_slice()).collect();
    let step = firsts.len().div_ceil(KEYS - 1).max(1);
    let last = version.ssts().map(|sst| sst.last_key.as_slice()).max();
    let shown: BTreeSet<&[u8]> = firsts.into_iter().step_by(step).chain(last).collect();
    shown.into_iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}

fn families(version: &Version) -> Vec<FamilyText> {
    let families = version.table.spec.families.iter();
    families
        .map(|family| FamilyText {
            name: family.name.clone(),
            gc: version.table.gc.get(&family.name).map(|gc| format!("gc {gc}")).unwrap_or_default(),
            columns: family.columns.iter().map(|column| ColumnText::of(column).into_pair()).collect(),
        })
        .collect()
}

/// A column of a layout as people read it.
pub(super) struct ColumnText {
    /// The template of its qualifier.
    pub(super) qualifier: String,
    /// The template of its value, or how several values are packed into one.
    pub(super) value: String,
}

impl ColumnText {
    /// Describes a column.
    pub(super) fn of(column: &ColumnSpec) -> Self {
        let qualifier = if column.each { "each column".to_owned() } else { column.qualifier.clone() };
        let value = match &column.packed {
            PackedSpec::Json => "a JSON object an event".to_owned(),
            PackedSpec::Message(message) => format!("a protobuf {message} an event"),
            PackedSpec::Repeated(message) => format!("one protobuf a row, a {message} an event"),
            PackedSpec::None if column.value.is_empty() => "(empty)".to_owned(),
            PackedSpec::None => column.value.clone(),
        };
        Self { qualifier, value }
    }

    fn into_pair(self) -> (String, String) {
        (self.qualifier, self.value)
    }
}

/// Bytes of the files by what they hold, the most first: row keys, values of each column, timestamps and qualifiers, and what
/// is left.
fn bytes_by_column(snapshot: &Snapshot) -> Result<Vec<(String, u64)>, CliError> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0;

    for sst in snapshot.version().ssts() {
        let reader = snapshot.reader(sst)?;
        let inspection = reader.inspect().map_err(|source| CliError::Sst { path: sst.id.clone(), source })?;
        all += inspection.bytes;
        for stripe in &inspection.stripes {
            *sums.entry("row keys".to_owned()).or_default() += stripe.key_bytes;
            for chunk in &stripe.chunks {
                let column = chunk.column.and_then(|at| column_name(reader.schema(), at.group, at.column));
                let name = column.unwrap_or_else(|| "timestamps and qualifiers".to_owned());
                *sums.entry(name).or_default() += chunk.page_bytes + chunk.setup_bytes as u64;
            }
        }
    }

    let known: u64 = sums.values().sum();
    if let Some(left) = all.checked_sub(known).filter(|left| *left > 0) {
        sums.insert("indexes, filters and checksums".to_owned(), left);
    }

    let mut sums: Vec<(String, u64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    sums.sort_by(|(_, a), (_, b)| b.cmp(a));
    Ok(sums)
}

/// Windows with their files. What a file of several windows holds is spread over them evenly, since it is not kept by window.
fn windows(version: &Version) -> Vec<WindowBar> {
    let mut windows: BTreeMap<i64, WindowBar> = BTreeMap::new();
    for window in &version.windows {
        windows.entry(window.start).or_default();
        for sst in &window.ssts {
            let joined = sst.multi_window.as_ref().map(|joined| joined.windows.as_slice());
            let starts = joined.unwrap_or(std::slice::from_ref(&window.start));
            for (at, start) in starts.iter().enumerate() {
                let bar = windows.entry(*start).or_default();
                bar.files += 1;
                bar.shares_files |= starts.len() > 1;
                bar.rows += share(sst.rows, at, starts.len());
                bar.cells += share(sst.cells, at, starts.len());
                bar.bytes += share(sst.bytes, at, starts.len());
            }
        }
    }

    let unit = version.table.spec.window;
    windows.into_iter().map(|(start, bar)| WindowBar { window: window_name(unit, start), ..bar }).collect()
}

/// Part `at` of `parts` about equal ones, whose sum is the whole.
fn share(whole: u64, at: usize, parts: usize) -> u64 {
    let (at, parts) = (at as u64, parts.max(1) as u64);
    whole / parts + u64::from(at < whole % parts)
}

/// The newest versions that are kept; one that cannot be read is left out.
fn versions(store: &Store, table: &str) -> Result<Vec<VersionText>, CliError> {
    let table = store.table(table);
    let numbers = table.version_numbers()?;
    let mut found = Vec::new();
    for number in numbers.iter().skip(numbers.len().saturating_sub(VERSIONS)) {
        match table.version(*number) {
            Ok(version) => found.push(VersionText {
                number: version.number,
                at: Some(version.now),
                files: version.ssts().count() as u64,
                bytes: version.ssts().map(|sst| sst.bytes).sum(),
                inputs: version.inputs.len() as u64,
            }),
            Err(error) => leave_out(&error),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_the_whole() {
        for (whole, parts) in [(0, 1), (7, 1), (7, 3), (9, 3), (2, 5)] {
            let shares: Vec<u64> = (0..parts).map(|at| share(whole, at, parts)).collect();
            assert_eq!(shares.iter().sum::<u64>(), whole);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{shares:?}");
        }
    }
}
