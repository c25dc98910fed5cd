//! Verification: checksums in one pass over the file ([`Reader::sweep`]), then the decoded content.

use arrow::array::Array;
use bytes::Bytes;
use serde::Serialize;
use tidetable_layout::{Block, FieldType, Group, GroupBlock, Keys, Projection, ValueType};
use xxhash_rust::xxh3::Xxh3Default;

use crate::column;
use crate::column::stream::PageSource;
use crate::error::{FilePart, ReadError};
use crate::file::filter::KeyFilter;
use crate::file::reader::read;
use crate::file::{Reader, header};
use crate::format::HEADER_LEN;
use crate::group::{outliers, sums};
use crate::io::checksum;
use crate::keys::row_patterns::Records;
use crate::read::StripeReader;
use crate::stats::{StripeMeta, cells_of, column_meta};
use crate::stripe::{StripeHead, filled_rows};

/// The content of a verified file, by the counts of its stripe table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct VerifySummary {
    /// The number of stripes.
    pub stripes: u64,
    /// The number of rows.
    pub rows: u64,
    /// The number of records, of all groups.
    pub records: u64,
    /// The number of cells, of all groups.
    pub cells: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// The result of one pass over the bytes of a file.
#[derive(Debug)]
pub struct Sweep {
    /// xxh3-128 of the file; `None` if some of it could not be read.
    pub checksum: Option<u128>,
    /// All damage that was found, in file order.
    pub damage: Vec<ReadError>,
}

impl Reader {
    /// Reads and checks everything: the header, every checksum, that pages are contiguous, the order of keys and records,
    /// every count and range in the stripe table, and that the filter contains every key.
    ///
    /// # Errors
    /// The first damage.
    pub fn verify(&self) -> Result<VerifySummary, ReadError> {
        let swept = self.sweep();
        if let Some(damage) = swept.damage.into_iter().next() {
            return Err(damage);
        }
        (0..self.stripes().len()).try_for_each(|index| self.verify_stripe(index))?;
        Ok(self.summary())
    }

    /// The totals of the stripe table, without reading the file.
    pub fn summary(&self) -> VerifySummary {
        let mut summary = VerifySummary { bytes: self.bytes(), ..Default::default() };
        for meta in self.stripes() {
            summary.stripes += 1;
            summary.rows += meta.rows;
            summary.records += meta.records.iter().sum::<u64>();
            summary.cells += meta.cells;
        }
        summary
    }

    /// Reads every byte of the file once, from front to back, and checks every checksum, and that pages leave no gap.
    /// Continues after damage.
    pub fn sweep(&self) -> Sweep {
        let mut pass = Pass { reader: self, hash: Some(Xxh3Default::new()), damage: Vec::new() };
        pass.part("header", 0, HEADER_LEN as u64, |bytes| {
            if header::decode(bytes)? == (self.file.footer.version, self.uid()) {
                return Ok(());
            }
            Err(ReadError::Checksum { stripe: None, stream: FilePart::Header, page: 0, offset: 0 })
        });

        for (index, meta) in self.stripes().iter().enumerate() {
            pass.part("stripe", meta.offset, meta.len, |bytes| self.check_stripe(index, meta, &bytes));
        }

        let filter = &self.file.meta.filter;
        pass.part("filter", filter.offset, filter.len, |bytes| self.decode_filter(bytes).map(|_| ()));
        // Meta and footer were checked when the file was opened.
        let end = self.file.footer.meta_offset;
        pass.part("meta", end, self.bytes() - end, |_| Ok(()));
        Sweep { checksum: pass.hash.map(|hash| hash.digest128()), damage: pass.damage }
    }

    /// Compares all checksums of stripe `index`, whose bytes are `bytes`, and checks that its pages leave no gap.
    fn check_stripe(&self, index: usize, meta: &StripeMeta, bytes: &Bytes) -> Result<(), ReadError> {
        let split = usize::try_from(meta.head_len).ok().filter(|split| *split <= bytes.len());
        let Some(split) = split else { return Err(corrupt(meta, "stripe head")) };
        let (head, pages) = (bytes.slice(..split), bytes.slice(split..));
        if !checksum::matches(checksum::in_file(self.uid(), meta.offset, &head), meta.head_checksum) {
            let offset = meta.offset;
            return Err(ReadError::Checksum { stripe: Some(index), stream: FilePart::StripeHead, page: 0, offset });
        }

        let head = StripeHead::read(head, meta, self.schema(), &self.file.tail)?;
        let (start, len) = (meta.offset + meta.head_len, meta.len - meta.head_len);
        let pages = PageSource {
            source: self.file.source.as_ref(),
            stripe: index,
            start,
            len,
            whole: Some(pages),
            counts: None,
        };

        let mut next = 0;
        for group in 0..self.schema().groups.len() {
            let group = head.group(group, self.schema(), meta)?;
            if group.span.start != next {
                return Err(corrupt(meta, "page table"));
            }
            next = group.span.end;
            group.streams().try_for_each(|stream| pages.check_all(stream))?;
        }
        if next == len { Ok(()) } else { Err(corrupt(meta, "page table")) }
    }

    /// Decodes all of stripe `index` and checks the order of its keys and records, every count and range that the stripe
    /// table has of it, and that the filter lets its keys pass.
    ///
    /// # Errors
    /// The first damage, or if there is no such stripe.
    pub fn verify_stripe(&self, index: usize) -> Result<(), ReadError> {
        let meta = self.entry(index)?;
        let stripe = self.stripe(index)?;
        let block = stripe.read(0..stripe.keys().len(), &Projection::all(self.schema()))?;
        self.check_rows(meta, &block, self.filter())?;
        self.check_stored(meta, &stripe, &block)
    }

    /// Compares stored sums and outliers with the values of `block`, which has all rows of the stripe.
    fn check_stored(&self, meta: &StripeMeta, stripe: &StripeReader, block: &Block) -> Result<(), ReadError> {
        for (index, schema) in self.schema().groups.iter().enumerate() {
            let head = stripe.head.group(index, self.schema(), meta)?;
            let group = block.groups.get(index).and_then(Option::as_ref).ok_or(corrupt(meta, "group"))?;

            for (column_index, column) in schema.columns.iter().enumerate() {
                let values = group.columns.get(column_index).and_then(Option::as_ref);
                let pages = self.pages(stripe.index, meta, false)?;
                if let (Some(ends), Some(values)) = (head.outliers(column_index), values)
                    && !outliers::hold(&pages, ends, column.value, values)?
                {
                    return Err(corrupt(meta, "outliers"));
                }

                let Some(stream) = head.sums(column_index) else { continue };
                let found = sums::read(&pages, stream, column.value, 0..stripe.keys().len())?;
                let decimals = match column.value {
                    ValueType::Field(FieldType::Float64) => {
                        head.columns.get(column_index).map(column::decimals_of).transpose()?
                    }
                    _ => None,
                };
                let expected =
                    values.and_then(|values| sums::of_rows(values, column.value, &group.row_ends, decimals.flatten()));
                if !expected.is_some_and(|expected| sums::are_equal(&expected, &found)) {
                    return Err(corrupt(meta, "sums of rows"));
                }
            }
        }
        Ok(())
    }

    /// Checks `block`, which has all rows of a stripe, against the stripe table and the filter.
    fn check_rows(&self, meta: &StripeMeta, block: &Block, filter: Option<&KeyFilter>) -> Result<(), ReadError> {
        check_keys(meta, &block.keys)?;
        check(meta, filter.is_none_or(|filter| filter.holds(&block.keys)), "filter")?;

        let mut times: Option<(i64, i64)> = None;
        for (index, (group, schema)) in block.groups.iter().zip(&self.schema().groups).enumerate() {
            let group = group.as_ref().ok_or(corrupt(meta, "group"))?;
            check_group(meta, index, group, schema)?;
            for time in group.timestamps.iter().flatten() {
                let (low, high) = times.unwrap_or((*time, *time));
                times = Some((low.min(*time), high.max(*time)));
            }
        }
        check(meta, times == meta.timestamps, "range of timestamps")
    }
}

/// The error for damage in a stripe; `what` names the part.
fn corrupt(meta: &StripeMeta, what: &'static str) -> ReadError {
    ReadError::Corrupt { what, offset: meta.offset }
}

fn check(meta: &StripeMeta, is_sound: bool, what: &'static str) -> Result<(), ReadError> {
    if is_sound { Ok(()) } else { Err(corrupt(meta, what)) }
}

/// Checks that the keys of a stripe ascend, and that the first and the last are those of the stripe table.
fn check_keys(meta: &StripeMeta, keys: &Keys) -> Result<(), ReadError> {
    let (mut before, mut key) = (Vec::new(), Vec::new());
    for row in 0..keys.len() {
        key.clear();
        keys.write(row, &mut key);
        check(meta, row == 0 || before < key, "order of row keys")?;
        std::mem::swap(&mut before, &mut key);
    }
    check(meta, keys.get(0) == meta.first_key && before == meta.last_key, "first and last key")
}

/// Checks the order of the records of group `index`, and what the stripe table says of the group.
fn check_group(meta: &StripeMeta, index: usize, group: &GroupBlock, schema: &Group) -> Result<(), ReadError> {
    check(meta, sorted(group, schema.keeps_duplicates()), "order of records")?;

    let columns = group.columns.iter().flatten().zip(&schema.columns);
    let found: Vec<_> = columns.map(|(array, column)| column_meta(array, column.value)).collect();
    check(meta, meta.columns.get(index) == Some(&found), "counts and ranges of values")?;
    let filled = filled_rows(schema, group, 0..group.row_ends.len());
    let cells = cells_of(schema, group.len() as u64, &found, filled);
    check(meta, meta.group_cells.get(index) == Some(&cells), "count of cells")?;
    check(meta, group.columns.iter().flatten().all(|array| array.len() == group.len()), "records")?;

    let records = records_of(group, schema.keeps_duplicates());
    let one_version_each = meta.one_version_each.get(index) == Some(&true);
    check(meta, !one_version_each || records.one_version_each(), "versions of cells")?;
    let fills_rows = meta.fills_rows.get(index) == Some(&true);
    check(meta, !fills_rows || records.fill_rows(), "rows without records")
}

/// The state of one pass over the bytes of a file.
struct Pass<'a> {
    reader: &'a Reader,
    /// The hash of all bytes so far; `None` once some could not be read.
    hash: Option<Xxh3Default>,
    damage: Vec<ReadError>,
}

impl Pass<'_> {
    /// Reads the next part of the file and applies `check` to its bytes. What fails is added to the damage.
    fn part(&mut self, what: &'static str, offset: u64, len: u64, check: impl FnOnce(Bytes) -> Result<(), ReadError>) {
        let bytes = match read(self.reader.file.source.as_ref(), what, offset, len) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.hash = None;
                self.damage.push(error);
                return;
            }
        };
        if let Some(hash) = &mut self.hash {
            hash.update(&bytes);
        }
        self.damage.extend(check(bytes).err());
    }
}

/// The records of a group, as row patterns see them.
fn records_of(group: &GroupBlock, keeps_duplicates: bool) -> Records<'_> {
    Records {
        ends: group.row_ends.clone(),
        codes: group.qualifiers.as_ref().map(|qualifiers| qualifiers.codes.as_slice()),
        timestamps: group.timestamps.as_deref(),
        keeps_duplicates,
    }
}

/// Whether the dictionary of a group and the records of each row are in the order that writers require.
fn sorted(group: &GroupBlock, keeps_duplicates: bool) -> bool {
    let records = records_of(group, keeps_duplicates);
    let names = group.qualifiers.as_ref().map_or(&[][..], |qualifiers| &qualifiers.dictionary);
    names.is_sorted_by(|left, right| left < right) && records.rows().all(|row| records.sorted(row))
}
