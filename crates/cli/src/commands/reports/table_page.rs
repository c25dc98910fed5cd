//! `tidetable describe --report`: a table as a page.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tidetable_layout::spec::PackedSpec;
use tidetable_layout::time::window_name;
use tidetable_page::view::{FamilyText, TablePage, VersionText, WindowBar};
use tidetable_store::maintenance::leave_out;
use tidetable_store::{Snapshot, Sst, Store, Version};

use super::inspect::column_name;
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
    let sum = |of: fn(&Sst) -> u64| version.ssts().map(of).sum::<u64>();
    let fields = snapshot.layout().records_schema();
    Ok(TablePage {
        title: format!("Table {}", spec.name),
        subtitle: format!(
            "Of job {}, version {}: {}, {}, {} in {}.",
            version.table.job,
            version.number,
            count(sum(|sst| sst.rows), "row"),
            count(sum(|sst| sst.cells), "cell"),
            bytes(sum(|sst| sst.bytes)),
            count(version.ssts().count() as u64, "file")
        ),
        command: format!("tidetable describe {} --report", spec.name),
        row_key: spec.row_key.clone(),
        keys: keys(version),
        families: families(version),
        fields: fields.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect(),
        bytes: bytes_by_column(snapshot)?,
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
    let family = |family: &tidetable_layout::spec::FamilySpec| FamilyText {
        name: family.name.clone(),
        gc: version.table.gc.get(&family.name).map(|gc| format!("gc {gc}")).unwrap_or_default(),
        columns: family
            .columns
            .iter()
            .map(|column| {
                let qualifier = if column.each { "each column".to_owned() } else { column.qualifier.clone() };
                let value = match &column.packed {
                    PackedSpec::Json => "a JSON object an event".to_owned(),
                    PackedSpec::Message(message) => format!("a protobuf {message} an event"),
                    PackedSpec::Repeated(message) => format!("one protobuf a row, a {message} an event"),
                    PackedSpec::None if column.value.is_empty() => "(empty)".to_owned(),
                    PackedSpec::None => column.value.clone(),
                };
                (qualifier, value)
            })
            .collect(),
    };
    version.table.spec.families.iter().map(family).collect()
}

/// Bytes of the files by what they hold, the most first: row keys, values of each column, timestamps and qualifiers, and what
/// is left.
fn bytes_by_column(snapshot: &Snapshot) -> Result<Vec<(String, u64)>, CliError> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0;
    for sst in snapshot.version().ssts() {
        let reader = snapshot.reader(sst)?;
        let path = || sst.id.clone();
        let inspection = reader.inspect().map_err(|source| CliError::Sst { path: path(), source })?;
        all += inspection.bytes;
        for stripe in &inspection.stripes {
            *sums.entry("row keys".to_owned()).or_default() += stripe.key_bytes;
            for chunk in &stripe.chunks {
                let column = chunk.column.and_then(|(group, column)| column_name(reader.schema(), group, column));
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

/// Windows with their own files; files of several windows count for the first.
fn windows(version: &Version) -> Vec<WindowBar> {
    let windows = version.windows.iter().map(|window| {
        let sum = |of: fn(&Sst) -> u64| window.ssts.iter().map(of).sum::<u64>();
        WindowBar {
            window: window_name(version.table.spec.window, window.start),
            files: window.ssts.len() as u64,
            rows: sum(|sst| sst.rows),
            cells: sum(|sst| sst.cells),
            bytes: sum(|sst| sst.bytes),
        }
    });
    windows.collect()
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
