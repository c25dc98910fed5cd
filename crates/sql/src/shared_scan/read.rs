//! Reads shared files and splits their records by period.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use tidetable_store::ScanRange;
use tidetable_store::read::ScanOptions;

use crate::error::external;
use crate::scan::records::{ReadRequest, RecordReader, WantedRows};
use crate::scan::spec::{ScanOutput, ScanTask, TableScan};
use crate::shared_scan::files::{PeriodRecords, SharedFiles, bytes_of};
use crate::shared_scan::signatures::ScanSignature;
use crate::shared_scan::split::PeriodRanges;
use crate::shared_scan::{SharedScan, SharedScanPeriod, share};

impl SharedScanPeriod {
    /// The records of a scan from the pass; `None` if it must read by itself. `None` also after a failed read, so that
    /// each period reports the error.
    pub(crate) fn records(
        &self,
        task: &ScanTask,
        name: &str,
        ranges: &[ScanRange],
        options: &ScanOptions,
    ) -> Option<Vec<RecordBatch>> {
        let Self { scan, period } = self;
        let signature = ScanSignature::of(task)?;
        let signature = scan.signatures.iter().position(|known| *known == signature)?;
        // A query with narrower time bounds than its period reads by itself.
        if task.scan.time != scan.time(*period) {
            return None;
        }

        let snapshot = &task.scan.snapshot;
        let mut shared = Vec::with_capacity(ranges.len());
        for range in ranges {
            if !share::is_alike(snapshot, range) {
                return None;
            }
            shared.push(scan.files(signature, snapshot, range).ok().filter(|files| files.gives(*period))?);
        }

        let mut given = Vec::new();
        for files in shared {
            scan.read(&files, task, name, options);
            given.extend(files.records(*period)?);
        }

        scan.given.fetch_add(1, Ordering::Relaxed);
        Some(given)
    }
}

impl SharedScan {
    /// Reads unread pieces of `files`, concurrently with other scans; all wait for the last piece.
    fn read(&self, files: &SharedFiles, task: &ScanTask, name: &str, options: &ScanOptions) {
        let mut read = 0;
        while let Some((piece, range)) = files.next_piece() {
            let mut given = Vec::new();
            match self.read_piece(files, range, task, name, options, &mut given) {
                Ok(()) => piece.keep(given),
                Err(_) => self.held.sub(given.iter().map(bytes_of).sum()),
            }
            read += u64::from(range.keys.start == *files.start());
        }
        // Periods excluded meanwhile.
        self.held.sub(files.release());
        self.read.fetch_add(read, Ordering::Relaxed);
    }

    /// Reads a piece of `files`, and divides its records among the periods that take them.
    fn read_piece(
        &self,
        files: &SharedFiles,
        range: &ScanRange,
        task: &ScanTask,
        name: &str,
        options: &ScanOptions,
        given: &mut Vec<PeriodRecords>,
    ) -> Result<()> {
        let snapshot = task.scan.snapshot.clone();
        let within = match &task.scan.output {
            ScanOutput::Records { within } => within.as_ref().map(|(time, _)| (*time, range.time.clone())),
            _ => None,
        };
        let scan = Arc::new(TableScan {
            snapshot: snapshot.clone(),
            output: ScanOutput::Records { within: within.clone() },
            keys: task.scan.keys.clone(),
            time: range.time.clone(),
            even: false,
            push_down: task.scan.push_down,
        });

        let (by_row, rows) = (within.is_none(), WantedRows::Every);
        let wanted = ReadRequest { fields: &task.columns, by_row, rows, ..ReadRequest::default() };
        let reader = RecordReader::new(&scan, name, &task.stored, &task.filters, &wanted)?;
        let fields = reader.record_fields();
        let columns = fields.places(&task.columns)?;
        let time =
            within.map(|(time, _)| fields.places(&[time])).transpose()?.and_then(|places| places.first().copied());

        given.extend((0..self.times.len()).map(|period| files.gives(period).then(Vec::new)));
        for block in snapshot.scan_with(range, &reader.projection(), options).map_err(external)? {
            if self.stopped.load(Ordering::Relaxed) || files.periods().is_empty() {
                return Err(DataFusionError::Execution("no period takes these records".to_owned()));
            }

            let block = block.map_err(external)?;
            let windows = match time {
                Some(_) => Vec::new(),
                None => {
                    let windows = snapshot.layout().row_windows(&block.keys);
                    windows.map_err(|error| DataFusionError::External(Box::new(error)))?.unwrap_or_default()
                }
            };
            let Some(found) = reader.read(block)? else { continue };
            let places = match time {
                Some(time) => PeriodRanges::by_times(&found.records, time, &self.times)?,
                None => PeriodRanges::by_windows(&windows, &found.ends, &self.times),
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
    fn give_up_what_does_not_fit(&self, files: &SharedFiles, given: &mut [PeriodRecords]) {
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
