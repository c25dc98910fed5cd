//! Verification: checksums in one pass over the file ([`Reader::sweep`]), then the decoded content.

use arrow::array::Array;
use bytes::Bytes;
use serde::Serialize;
use tidetable_layout::{Block, FieldType, GroupBlock, Projection, ValueType};
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

/// The content of a verified file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct VerifySummary {
    /// Stripes read.
    pub stripes: u64,
    /// Rows read.
    pub rows: u64,
    /// Records read, in all groups.
    pub records: u64,
    /// Cells read.
    pub cells: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The result of one pass over the bytes of a file.
#[derive(Debug)]
pub struct Sweep {
    /// xxh3-128 of the file; `None` if some of it could not be read.
    pub checksum: Option<u128>,
    /// Damage, in file order.
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

    /// The totals in the stripe table.
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
        // Checked when it was opened.
        let end = self.file.footer.meta_offset;
        pass.part("meta", end, self.bytes() - end, |_| Ok(()));
        Sweep { checksum: pass.hash.map(|hash| hash.digest128()), damage: pass.damage }
    }

    /// The checksums of a stripe whose bytes are `bytes`.
    fn check_stripe(&self, index: usize, meta: &StripeMeta, bytes: &Bytes) -> Result<(), ReadError> {
        let corrupt = |what| ReadError::Corrupt { what, offset: meta.offset };
        let split = usize::try_from(meta.head_len).ok().filter(|split| *split <= bytes.len());
        let Some(split) = split else { return Err(corrupt("stripe head")) };
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
                return Err(corrupt("page table"));
            }
            next = group.span.end;
            group.streams().try_for_each(|stream| pages.check_all(stream))?;
        }
        if next == len { Ok(()) } else { Err(corrupt("page table")) }
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

    /// Compares stored sums and outliers with the values of `block`.
    fn check_stored(&self, meta: &StripeMeta, stripe: &StripeReader, block: &Block) -> Result<(), ReadError> {
        for (at, schema) in self.schema().groups.iter().enumerate() {
            let head = stripe.head.group(at, self.schema(), meta)?;
            for (column, stored) in schema.columns.iter().enumerate() {
                let group = block.groups.get(at).and_then(Option::as_ref);
                let values = group.and_then(|group| Some((group, group.columns.get(column)?.as_ref()?)));
                let pages = self.pages(stripe.index, meta, false)?;
                if let (Some(ends), Some((_, values))) = (head.outliers(column), values)
                    && !outliers::hold(&pages, ends, stored.value, values)?
                {
                    return Err(ReadError::Corrupt { what: "outliers", offset: meta.offset });
                }
                let Some(stream) = head.sums(column) else { continue };
                let found = sums::read(&pages, stream, stored.value, 0..stripe.keys().len())?;
                let decimals = match stored.value {
                    ValueType::Field(FieldType::Float64) => {
                        head.columns.get(column).map(column::decimals_of).transpose()?
                    }
                    _ => None,
                };
                let expected = values.and_then(|(group, values)| {
                    sums::of_rows(values, stored.value, &group.row_ends, decimals.flatten())
                });
                if !expected.is_some_and(|expected| sums::alike(&expected, &found)) {
                    return Err(ReadError::Corrupt { what: "sums of rows", offset: meta.offset });
                }
            }
        }
        Ok(())
    }

    fn check_rows(&self, meta: &StripeMeta, block: &Block, filter: Option<&KeyFilter>) -> Result<(), ReadError> {
        let corrupt = |what| ReadError::Corrupt { what, offset: meta.offset };
        let hold = |sound: bool, what| if sound { Ok(()) } else { Err(corrupt(what)) };
        let keys = &block.keys;
        let (mut before, mut key) = (Vec::new(), Vec::new());
        for row in 0..keys.len() {
            key.clear();
            keys.write(row, &mut key);
            hold(row == 0 || before < key, "order of row keys")?;
            std::mem::swap(&mut before, &mut key);
        }
        hold(keys.get(0) == meta.first_key && before == meta.last_key, "first and last key")?;
        hold(filter.is_none_or(|filter| filter.holds(keys)), "filter")?;

        let mut times: Option<(i64, i64)> = None;
        for (at, group) in block.groups.iter().enumerate() {
            let group = group.as_ref().ok_or(corrupt("group"))?;
            hold(sorted(group, self.schema().groups[at].keeps_duplicates()), "order of records")?;
            for time in group.timestamps.iter().flatten() {
                let (low, high) = times.unwrap_or((*time, *time));
                times = Some((low.min(*time), high.max(*time)));
            }
            let schema = &self.schema().groups[at];
            let columns = group.columns.iter().flatten().zip(&schema.columns);
            let found: Vec<_> = columns.map(|(array, column)| column_meta(array, column.value)).collect();
            hold(meta.columns.get(at) == Some(&found), "counts and ranges of values")?;
            let filled = filled_rows(schema, group, 0..group.row_ends.len());
            let cells = cells_of(schema, group.len() as u64, &found, filled);
            hold(meta.group_cells.get(at) == Some(&cells), "count of cells")?;
            hold(group.columns.iter().flatten().all(|array| array.len() == group.len()), "records")?;
            let records = records_of(group, schema.keeps_duplicates());
            let is_told = |told: &[bool]| told.get(at) == Some(&true);
            hold(!is_told(&meta.one_version_each) || records.one_version_each(), "versions of cells")?;
            hold(!is_told(&meta.fills_rows) || records.fill_rows(), "rows without records")?;
        }
        hold(times == meta.timestamps, "range of timestamps")
    }
}

/// One pass over a file.
struct Pass<'a> {
    reader: &'a Reader,
    hash: Option<Xxh3Default>,
    damage: Vec<ReadError>,
}

impl Pass<'_> {
    /// The next part of the file.
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

fn records_of(group: &GroupBlock, keeps_duplicates: bool) -> Records<'_> {
    Records {
        ends: group.row_ends.clone(),
        codes: group.qualifiers.as_ref().map(|qualifiers| qualifiers.codes.as_slice()),
        timestamps: group.timestamps.as_deref(),
        keeps_duplicates,
    }
}

fn sorted(group: &GroupBlock, keeps_duplicates: bool) -> bool {
    let records = records_of(group, keeps_duplicates);
    let names = group.qualifiers.as_ref().map_or(&[][..], |qualifiers| &qualifiers.dictionary);
    names.is_sorted_by(|left, right| left < right) && records.rows().all(|row| records.sorted(row))
}
