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

/// A part whose files others may need, too.
struct SharingPart<'a> {
    /// Index of the part.
    index: usize,
    part: &'a StalePart,
    /// Event times of its period, microseconds since the epoch.
    bounds: Range<i64>,
}

impl PublishStage<'_> {
    /// The shared scans for the parts at `indexes`, by index.
    pub(crate) fn passes(
        &self,
        compared: &ComparedExport<'_>,
        checker: &Checker<'_>,
        indexes: &[usize],
    ) -> BTreeMap<usize, PassMember> {
        let per = compared.export.per;
        let shares: Vec<&Snapshot> = compared.snapshots.iter().filter(|snapshot| may_share(snapshot, per)).collect();
        let mut passes = BTreeMap::new();
        if shares.is_empty() || indexes.len() < 2 {
            return passes;
        }

        let parts = self.sharing_parts(compared, indexes);
        let files: Vec<PartSsts> = parts.iter().map(|part| files_of(&shares, &part.bounds)).collect();
        // Half: the last parts of a scan may still be written while the next one reads.
        let memory = self.options.memory / 2;
        for run in sharing(&files) {
            let ends = run.iter().take(2).filter_map(|at| parts.get(*at));
            let asked: Result<Vec<ScanSignatures>, SqlError> =
                ends.map(|end| self.asked(compared, checker, end)).collect();
            // An invalid query fails when it is run.
            let Ok([one, other]) = asked.as_deref() else { continue };
            let asked = one.alike(other);
            if asked.is_empty() {
                continue;
            }

            for group in groups(&run, asked.bytes(), memory) {
                let members: Vec<&SharingPart<'_>> = group.iter().filter_map(|at| parts.get(*at)).collect();
                let times = members.iter().map(|member| member.bounds.clone()).collect();
                let pass = Arc::new(SharedScan::new(&asked, times, memory));
                for (at, member) in members.iter().enumerate() {
                    passes.insert(member.index, PassMember { pass: Arc::clone(&pass), at });
                }
            }
        }
        passes
    }

    /// The parts at `indexes` whose queries are run.
    fn sharing_parts<'c>(&self, compared: &'c ComparedExport<'_>, indexes: &[usize]) -> Vec<SharingPart<'c>> {
        let mut parts = Vec::new();
        for index in indexes.iter().copied() {
            let part = compared.parts.get(index).filter(|part| !part.sealed && part.lost.is_none());
            let Some(part) = part else { continue };
            parts.push(SharingPart { index, part, bounds: part.period.bounds(self.job.timezone) });
        }
        parts
    }

    /// The scans of the queries of a part: that of the export, and those of its checks.
    fn asked(
        &self,
        compared: &ComparedExport<'_>,
        checker: &Checker<'_>,
        sharing: &SharingPart<'_>,
    ) -> Result<ScanSignatures, SqlError> {
        let SharingPart { part, bounds, .. } = sharing;
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
    let slices = snapshots.iter().flat_map(|snapshot| snapshot.scan_ranges(&[KeyRange::all()], bounds));
    slices.map(|slice| slice.ssts.join(" ")).collect()
}
