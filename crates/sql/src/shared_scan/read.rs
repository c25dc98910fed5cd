//! Reads shared files and splits their records by period.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use tidetable_store::{ScanOptions, ScanRange};

use crate::error::external;
use crate::scan::records::{RecordReader, Wanted};
use crate::scan::spec::{Shape, TableScan, Work};
use crate::shared_scan::asked::ScanSignature;
use crate::shared_scan::files::{Given, SharedFiles, bytes_of};
use crate::shared_scan::split::Places;
use crate::shared_scan::{InPass, SharedScan, share};

impl InPass {
    /// The records of a scan from the pass; `None` if it must read by itself. `None` also after a failed read, so that
    /// each period reports the error.
    pub(crate) fn records(
        &self,
        work: &Work,
        name: &str,
        slices: &[ScanRange],
        options: &ScanOptions,
    ) -> Option<Vec<RecordBatch>> {
        let Self { pass, at } = self;
        let ask = ScanSignature::of(work)?;
        let ask = pass.asks.iter().position(|known| *known == ask)?;
        // A query with narrower time bounds than its period reads by itself.
        if work.scan.time != pass.time(*at) {
            return None;
        }
        let snapshot = &work.scan.snapshot;
        let mut shared = Vec::with_capacity(slices.len());
        for slice in slices {
            if !share::is_alike(snapshot, slice) {
                return None;
            }
            shared.push(pass.files(ask, snapshot, slice).ok().filter(|files| files.gives(*at))?);
        }
        let mut given = Vec::new();
        for files in shared {
            pass.read(&files, work, name, options);
            given.extend(files.records(*at)?);
        }
        pass.given.fetch_add(1, Ordering::Relaxed);
        Some(given)
    }
}

impl SharedScan {
    /// Reads unread pieces of `files`, concurrently with other scans; all wait for the last piece.
    fn read(&self, files: &SharedFiles, work: &Work, name: &str, options: &ScanOptions) {
        let mut read = 0;
        while let Some((piece, slice)) = files.next_piece() {
            let mut given = Vec::new();
            match self.read_piece(files, slice, work, name, options, &mut given) {
                Ok(()) => piece.keep(given),
                Err(_) => self.held.sub(given.iter().map(bytes_of).sum()),
            }
            read += u64::from(slice.keys.start == *files.start());
        }
        // Periods excluded meanwhile.
        self.held.sub(files.release());
        self.read.fetch_add(read, Ordering::Relaxed);
    }

    fn read_piece(
        &self,
        files: &SharedFiles,
        slice: &ScanRange,
        work: &Work,
        name: &str,
        options: &ScanOptions,
        given: &mut Vec<Given>,
    ) -> Result<()> {
        let snapshot = work.scan.snapshot.clone();
        let within = match &work.scan.shape {
            Shape::Records { within } => within.as_ref().map(|(time, _)| (*time, slice.time.clone())),
            _ => None,
        };
        let scan = Arc::new(TableScan {
            snapshot: snapshot.clone(),
            shape: Shape::Records { within: within.clone() },
            keys: work.scan.keys.clone(),
            time: slice.time.clone(),
            pass: None,
            even: false,
            push_down: work.scan.push_down,
        });
        let wanted = Wanted { fields: &work.columns, by_row: within.is_none(), ..Wanted::default() };
        let reader = RecordReader::new(&scan, name, &work.stored, &work.filters, &wanted)?;
        let fields = reader.record_fields();
        let columns = fields.places(&work.columns)?;
        let time =
            within.map(|(time, _)| fields.places(&[time])).transpose()?.and_then(|places| places.first().copied());
        given.extend((0..self.times.len()).map(|period| files.gives(period).then(Vec::new)));
        for block in snapshot.scan_with(slice, &reader.projection(), options).map_err(external)? {
            if self.stopped.load(Ordering::Relaxed) || files.periods().is_empty() {
                return Err(DataFusionError::Execution("no period takes these records".to_owned()));
            }
            let block = block.map_err(external)?;
            let unlike_keys = |error| DataFusionError::External(Box::new(error));
            let windows = match time {
                Some(_) => Vec::new(),
                None => snapshot.layout().row_windows(&block.keys).map_err(unlike_keys)?.unwrap_or_default(),
            };
            let Some(found) = reader.read(block)? else { continue };
            let places = match time {
                Some(time) => Places::by_times(&found.records, time, &self.times)?,
                None => Places::by_windows(&windows, &found.ends, &self.times),
            };
            let kept = found.records.project(&columns)?;
            for (period, given) in given.iter_mut().enumerate() {
                let Some(batches) = given else { continue };
                if !files.gives(period) {
                    self.held.sub(bytes_of(&given.take()));
                } else if let Some(batch) = places.take(&kept, period)? {
                    self.held.add(batch.get_array_memory_size() as u64);
                    batches.push(batch);
                }
            }
            self.give_up_what_does_not_fit(files, given);
        }
        Ok(())
    }

    /// While the budget is exceeded, excludes the later half of the periods.
    fn give_up_what_does_not_fit(&self, files: &SharedFiles, given: &mut [Given]) {
        while self.held.bytes() > self.most {
            let periods = files.periods();
            if periods.is_empty() {
                return;
            }
            periods.iter().skip(periods.len() / 2).for_each(|period| files.give_up(*period));
            let gone = given.iter_mut().enumerate().filter(|(period, _)| !files.gives(*period));
            self.held.sub(gone.map(|(_, given)| bytes_of(&given.take())).sum());
            self.held.sub(files.release());
        }
    }
}
