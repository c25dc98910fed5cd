//! Parallel writing of CSV files, with their row counts and sums.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Summary of written files, against which readers check themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The files, in order of arrival.
    pub paths: Vec<PathBuf>,
    /// Ids of the entities, in the order of their index.
    pub ids: Vec<u32>,
    /// Rows of all files, without headers.
    pub rows: u64,
    /// Rows that are equal to an earlier one.
    pub duplicates: u64,
    /// Rows that are later than their time, beside duplicates.
    pub late: u64,
    /// Rows that are missing.
    pub gaps: u64,
    /// For each numeric column.
    pub sums: Vec<ColumnSum>,
}

/// The sum of a column, in units of its last decimal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnSum {
    /// Name of the column.
    pub name: String,
    /// The number of decimals in the files.
    pub decimals: u32,
    /// Sum of all rows.
    pub rows: u128,
    /// Sum of the rows that are duplicates.
    pub duplicates: u128,
}

impl ColumnSum {
    fn float(&self, sum: u128) -> f64 {
        sum as f64 / 10f64.powi(self.decimals as i32)
    }
}

impl Written {
    /// Number of different rows.
    pub fn records(&self) -> u64 {
        self.rows - self.duplicates
    }

    /// The sum of column number `column` over all rows.
    pub fn sum(&self, column: usize) -> f64 {
        self.sums.get(column).map_or(0.0, |sum| sum.float(sum.rows))
    }

    /// The sum of column number `column` over the different rows.
    pub fn records_sum(&self, column: usize) -> f64 {
        self.sums.get(column).map_or(0.0, |sum| sum.float(sum.rows - sum.duplicates))
    }

    /// Prints lines of `rows`, `records`, `late` and `gaps` with their numbers, then, for each column, `sum`, its name, its
    /// sum over all rows, and that over the different ones.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn report(&self, out: &mut impl Write) -> io::Result<()> {
        let counts = [("rows", self.rows), ("records", self.records()), ("late", self.late), ("gaps", self.gaps)];
        counts.iter().try_for_each(|(name, count)| writeln!(out, "{name} {count}"))?;
        self.sums
            .iter()
            .enumerate()
            .try_for_each(|(at, sum)| writeln!(out, "sum {} {} {}", sum.name, self.sum(at), self.records_sum(at)))
    }
}

/// Bytes of text after which it is written to its file.
const TEXT_BYTES: usize = 1 << 20;

/// Counts and sums of rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) rows: u64,
    pub(crate) duplicates: u64,
    pub(crate) late: u64,
    pub(crate) gaps: u64,
    /// For each column, the sum of all rows and that of duplicates.
    sums: Vec<[u128; 2]>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.duplicates += other.duplicates;
        self.late += other.late;
        self.gaps += other.gaps;
        for (sum, own) in self.sums.iter_mut().zip(&other.sums) {
            sum[0] += own[0];
            sum[1] += own[1];
        }
    }
}

/// Buffered text of one file, with its counts and sums.
pub(crate) struct Text {
    out: BufWriter<File>,
    pub(crate) line: Vec<u8>,
    pub(crate) tally: Tally,
    /// Whether the current row is a duplicate.
    pub(crate) duplicate: bool,
}

impl Text {
    /// Adds a value of the current row to the sum of column number `column`, in units of its last decimal.
    pub(crate) fn count(&mut self, column: usize, value: u64) {
        let sum = &mut self.tally.sums[column];
        sum[0] += u128::from(value);
        if self.duplicate {
            sum[1] += u128::from(value);
        }
    }

    /// Appends an integer to the current row.
    pub(crate) fn integer(&mut self, value: u64) {
        self.line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Appends `value` units of the last of `DECIMALS` decimals.
    pub(crate) fn fixed<const DECIMALS: u32>(&mut self, value: u64) {
        let unit = 10u64.pow(DECIMALS);
        self.integer(value / unit);
        self.line.push(b'.');
        self.padded::<DECIMALS>(value % unit);
    }

    /// Appends the last `DIGITS` digits of an integer.
    pub(crate) fn padded<const DIGITS: u32>(&mut self, value: u64) {
        let mut rest = value;
        let start = self.line.len();
        self.line.resize(start + DIGITS as usize, b'0');
        for digit in self.line[start..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Ends the current row.
    pub(crate) fn end_row(&mut self) -> io::Result<()> {
        self.tally.rows += 1;
        self.tally.duplicates += u64::from(self.duplicate);
        self.line.push(b'\n');
        if self.line.len() >= TEXT_BYTES { self.put() } else { Ok(()) }
    }

    fn put(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

/// Writes `paths` on all cores, each by `fill` with its index, under the header `header`. `sums` names the summed
/// columns, with their decimals.
pub(crate) fn write_files(
    paths: Vec<PathBuf>,
    ids: Vec<u32>,
    header: &str,
    sums: Vec<(String, u32)>,
    fill: impl Fn(u32, &mut Text) -> io::Result<()> + Sync,
) -> io::Result<Written> {
    let empty = Tally { sums: vec![[0; 2]; sums.len()], ..Tally::default() };
    let (next, done) = (AtomicU32::new(0), Mutex::new(empty.clone()));
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(paths.len());
        let work = || -> io::Result<()> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = paths.get(at as usize) else { return Ok(()) };
                let tally = write_file(path, header, empty.clone(), |text| fill(at, text))?;
                done.lock().unwrap_or_else(PoisonError::into_inner).add(&tally);
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a writing thread panicked"))))
    })?;

    let Tally { rows, duplicates, late, gaps, sums: found } = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sums = sums.into_iter().zip(found).map(|((name, decimals), [rows, duplicates])| ColumnSum {
        name,
        decimals,
        rows,
        duplicates,
    });
    let sums = sums.collect();
    Ok(Written { paths, ids, rows, duplicates, late, gaps, sums })
}

/// Writes a file under its header, and returns what it holds; `tally` is that of an empty one.
fn write_file(
    path: &Path,
    header: &str,
    tally: Tally,
    fill: impl FnOnce(&mut Text) -> io::Result<()>,
) -> io::Result<Tally> {
    let out = BufWriter::with_capacity(TEXT_BYTES, File::create(path)?);
    let mut text = Text { out, line: header.as_bytes().to_vec(), tally, duplicate: false };
    fill(&mut text)?;
    text.put()?;
    text.out.flush()?;
    Ok(text.tally)
}
