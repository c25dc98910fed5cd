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
    /// The files, in time order.
    pub paths: Vec<PathBuf>,
    /// Rows, without headers.
    pub rows: u64,
    /// For each numeric column: (name, decimals, sum in units of the last decimal).
    pub sums: Vec<(String, u32, u128)>,
}

impl Written {
    /// The sum of column number `column` as a float.
    pub fn sum(&self, column: usize) -> f64 {
        self.sums.get(column).map_or(0.0, |(_, decimals, sum)| *sum as f64 / 10f64.powi(*decimals as i32))
    }

    /// Prints a line with the number of rows, then one for the sum of each column.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn report(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "rows {}", self.rows)?;
        (0..self.sums.len()).try_for_each(|at| writeln!(out, "{} {}", self.sums[at].0, self.sum(at)))
    }
}

/// Buffer size, bytes.
const TEXT_BYTES: usize = 1 << 20;

/// Buffered text of one file, with the sums of its numbers.
pub(crate) struct Text {
    out: BufWriter<File>,
    pub(crate) line: Vec<u8>,
    pub(crate) rows: u64,
    pub(crate) sums: Vec<u128>,
}

impl Text {
    /// Appends an integer.
    pub(crate) fn integer(&mut self, value: u64) {
        self.line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Appends `value` units of the last of `DECIMALS` decimals.
    pub(crate) fn fixed<const DECIMALS: u32>(&mut self, value: u64) {
        let unit = 10u64.pow(DECIMALS);
        self.integer(value / unit);
        self.line.push(b'.');
        let mut rest = value % unit;
        let start = self.line.len();
        self.line.resize(start + DECIMALS as usize, b'0');
        for digit in self.line[start..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
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
/// columns.
pub(crate) fn write_files(
    paths: Vec<PathBuf>,
    header: &str,
    sums: Vec<(String, u32)>,
    fill: impl Fn(u32, &mut Text) -> io::Result<()> + Sync,
) -> io::Result<Written> {
    let (next, done) = (AtomicU32::new(0), Mutex::new((0, vec![0u128; sums.len()])));
    let one = |at: u32, path: &Path| -> io::Result<()> {
        let out = BufWriter::with_capacity(TEXT_BYTES, File::create(path)?);
        let mut text = Text { out, line: header.as_bytes().to_vec(), rows: 0, sums: vec![0; sums.len()] };
        fill(at, &mut text)?;
        text.put()?;
        text.out.flush()?;
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0 += text.rows;
        done.1.iter_mut().zip(&text.sums).for_each(|(all, own)| *all += own);
        Ok(())
    };
    let work = || -> io::Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match paths.get(at as usize) {
                Some(path) => one(at, path)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(paths.len());
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let broken = |_| Err(io::Error::other("a writing thread panicked"));
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(broken))
    })?;
    let (rows, found) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sums = sums.into_iter().zip(found).map(|((name, decimals), sum)| (name, decimals, sum)).collect();
    Ok(Written { paths, rows, sums })
}
