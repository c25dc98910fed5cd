//! The result of a part, for the run record, the observer and the list.

use tidetable_export::{ExportError, LogPlace, Outcome, PublishedPart};
use tidetable_job::Export;
use tidetable_record::{ExportRecord, PartState};
use tidetable_store::published::{MadeFrom, Part as ListedPart};

use crate::fault::error::RunError;
use crate::observe::Event;
use crate::run::parts::StalePart;
use crate::run::publish::compare::ComparedExport;

/// The result of trying a part.
pub(crate) enum PartResult {
    Published(Box<PublishedPart>),
    /// Its checks forbid to publish it.
    Refused,
    /// It stays as published, as cells of it have expired.
    Sealed,
    Failed(RunError),
}

/// The entry of a part in the run record.
pub(crate) fn part_record(export: &Export, part: &StalePart, tried: &PartResult) -> ExportRecord {
    let state = match tried {
        PartResult::Published(done) => match done.outcome {
            Outcome::Created | Outcome::Replaced => PartState::Published,
            Outcome::Unchanged => PartState::Unchanged,
            Outcome::Skipped => PartState::Empty,
            Outcome::Withdrawn => PartState::Withdrawn,
        },
        PartResult::Refused => PartState::Checks,
        PartResult::Sealed => PartState::Sealed,
        PartResult::Failed(_) => PartState::Failed,
    };

    let listed = match tried {
        PartResult::Published(done) => done.part.as_ref(),
        _ => None,
    };
    let (rows, bytes) = listed.map_or((0, 0), |part| (part.rows, part.bytes));

    let error = match tried {
        PartResult::Failed(error) => Some(error.to_string()),
        _ => None,
    };

    ExportRecord {
        export: export.name.clone(),
        label: part.label.clone(),
        part: part.folder.clone(),
        reason: part.reason.clone(),
        state,
        rows,
        bytes,
        error,
    }
}

/// The record of the log of a table that could not be written, as if it were a part.
pub(crate) fn log_record(export: &Export, place: LogPlace<'_>, error: &ExportError) -> ExportRecord {
    ExportRecord {
        export: export.name.clone(),
        label: place.log.directory().to_owned(),
        part: format!("{}/{}", place.folder, place.log.directory()),
        reason: "behind the list".to_owned(),
        state: PartState::Failed,
        rows: 0,
        bytes: 0,
        error: Some(error.to_string()),
    }
}

/// The event for the observer.
pub(crate) fn event_of(record: &ExportRecord) -> Event {
    let name = record.part.clone();
    let missed = |reason: &str| Event::Missed { name: record.part.clone(), reason: reason.to_owned() };
    match record.state {
        PartState::Checks => missed("its checks failed"),
        PartState::Sealed => missed(
            "what is published of it stays, because some of its cells have passed their retention; --force publishes the rest",
        ),
        PartState::Failed => missed(record.error.as_deref().unwrap_or_default()),
        PartState::Published | PartState::Unchanged | PartState::Empty | PartState::Withdrawn => {
            let changed = matches!(record.state, PartState::Published | PartState::Withdrawn);
            Event::Published { name, rows: record.rows, changed }
        }
    }
}

/// The versions and query that a part is made from.
pub(crate) fn made_from(compared: &ComparedExport<'_>, part: &StalePart) -> MadeFrom {
    MadeFrom {
        query: compared.query.clone(),
        sources: part.sources.clone(),
        folder: part.folder.clone(),
        is_gap: part.is_empty && part.previous.is_none(),
    }
}

/// A part without records that was never published; it is listed so that it is not compared again.
pub(crate) fn as_empty(compared: &ComparedExport<'_>, part: &StalePart) -> PublishedPart {
    PublishedPart {
        label: part.label.clone(),
        outcome: Outcome::Skipped,
        part: None,
        made_from: made_from(compared, part),
        columns: Vec::new(),
        obsolete: Vec::new(),
    }
}

/// A sealed part stays as published and is listed as current, so that it is reported once.
pub(crate) fn as_sealed(compared: &ComparedExport<'_>, part: &StalePart) -> Option<PublishedPart> {
    let made_from = made_from(compared, part);
    let previous = part.previous.clone()?;
    let listed = ListedPart { query: made_from.query.clone(), sources: made_from.sources.clone(), ..previous };
    Some(PublishedPart {
        label: part.label.clone(),
        outcome: Outcome::Unchanged,
        part: Some(listed),
        made_from,
        // The list has the columns of the parts that are written.
        columns: Vec::new(),
        obsolete: Vec::new(),
    })
}
