//! Shared scans of the parts of an export that read the same files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tidetable_job::Per;
use tidetable_layout::{KeyRange, Window};
use tidetable_sql::{ScanSignatures, SharedScan, SqlError};
use tidetable_store::Snapshot;

use crate::checks::checker::Checker;
use crate::observe::Event;
use crate::run::parts::StalePart;
use crate::run::publish::compare::ComparedExport;
use crate::run::publish::share::{PartSsts, groups, sharing};
use crate::run::publish::stage::PublishStage;
use crate::units::params::period_params;

/// A part that takes part in a shared scan.
pub(crate) struct PassMember {
    pub(crate) pass: Arc<SharedScan>,
    /// Its index among the periods of the scan.
    pub(crate) at: usize,
}

impl PublishStage<'_> {
    /// The shared scans for the parts at `places`, by place.
    pub(crate) fn passes(
        &self,
        compared: &ComparedExport<'_>,
        checker: &Checker<'_>,
        places: &[usize],
    ) -> BTreeMap<usize, PassMember> {
        let may_share = |snapshot: &&Snapshot| may_share(snapshot, compared.export.per);
        let shares: Vec<&Snapshot> = compared.snapshots.iter().filter(may_share).collect();
        let mut passes = BTreeMap::new();
        if shares.is_empty() || places.len() < 2 {
            return passes;
        }
        let parts: Vec<(usize, &StalePart, Range<i64>)> = places
            .iter()
            .filter_map(|place| Some((*place, compared.parts.get(*place)?)))
            .filter(|(_, part)| !part.sealed && part.lost.is_none())
            .map(|(place, part)| (place, part, part.period.bounds(self.job.timezone)))
            .collect();
        let files: Vec<PartSsts> = parts.iter().map(|(_, _, bounds)| files_of(&shares, bounds)).collect();
        // Half: the last parts of a scan may still be written while the next one reads.
        let memory = self.options.memory / 2;
        for run in sharing(&files) {
            let ends = run.iter().take(2).filter_map(|at| parts.get(*at));
            let asked: Result<Vec<ScanSignatures>, SqlError> =
                ends.map(|(_, part, bounds)| self.asked(compared, checker, part, bounds)).collect();
            // An invalid query fails when it is run.
            let Ok([one, other]) = asked.as_deref() else { continue };
            let asked = one.alike(other);
            if asked.is_empty() {
                continue;
            }
            for group in groups(&run, asked.bytes(), memory) {
                let members: Vec<_> = group.iter().filter_map(|at| parts.get(*at)).collect();
                let times = members.iter().map(|(_, _, bounds)| bounds.clone()).collect();
                let pass = Arc::new(SharedScan::new(&asked, times, memory));
                let member = |(at, (place, _, _)): (usize, &&(usize, &StalePart, Range<i64>))| {
                    (*place, PassMember { pass: Arc::clone(&pass), at })
                };
                passes.extend(members.iter().enumerate().map(member));
            }
        }
        passes
    }

    /// The scans of the queries of a part: that of the export, and those of its checks.
    fn asked(
        &self,
        compared: &ComparedExport<'_>,
        checker: &Checker<'_>,
        part: &StalePart,
        bounds: &Range<i64>,
    ) -> Result<ScanSignatures, SqlError> {
        let session = compared.session.restricted(bounds.clone());
        let params = period_params(&part.period, bounds, self.options.now);
        let mut asked = ScanSignatures::default();
        for query in checker.queries(compared.export, &compared.tables) {
            asked = asked.and(self.runtime.block_on(session.asked(&query, &params))?);
        }
        Ok(asked)
    }

    /// Reports how often files were read for several parts.
    pub(crate) fn note_passes(&self, compared: &ComparedExport<'_>, passes: &BTreeMap<usize, PassMember>) {
        let (mut parts, mut reads) = (0, 0);
        for PassMember { pass, at } in passes.values() {
            parts += u64::from(pass.counts().read > 0);
            // Count each scan once.
            reads += if *at == 0 { pass.counts().read } else { 0 };
        }
        if reads > 0 {
            self.observer.event(Event::ReadTogether { export: compared.export.name.clone(), parts, reads });
        }
    }
}

/// Whether several periods may read the same files of a table: multi-window files, windows longer than a
/// period, or rows that lie in several windows.
fn may_share(snapshot: &Snapshot, per: Per) -> bool {
    let longer = match per {
        Per::Hour => &[Window::Day, Window::Week, Window::Month, Window::None][..],
        Per::Day => &[Window::Week, Window::Month, Window::None],
        Per::Month => &[Window::None],
        Per::Query => return false,
    };
    !snapshot.layout().rows_lie_in_one_window()
        || longer.contains(&snapshot.layout().spec().window)
        || snapshot.version().ssts().any(|sst| sst.multi_window.is_some())
}

/// The files that hold a period of tables.
fn files_of(snapshots: &[&Snapshot], bounds: &Range<i64>) -> PartSsts {
    let slices = |snapshot: &&Snapshot| snapshot.scan_ranges(&[KeyRange::all()], bounds);
    snapshots.iter().flat_map(slices).map(|slice| slice.ssts.join(" ")).collect()
}
