//! Publication of query results as files, by period or as a whole.
//!
//! [`publish`] runs the query of one part and writes its rows to one file, or to several above a size limit. They
//! appear or are replaced atomically, and a part without rows has no file ([`EmptyPart`]). [`record`] adds parts to the
//! list; [`stale`] says which parts are out of date. Readers see `exports/SENSOR_20180101/*.parquet`, never half a day.
//!
//! [`DeltaLog`] is a Delta log beside them, and [`expired_files`] are those that its readers need no longer.
//! [`QueryFile`] writes the rows of a query to a file anywhere.
//! [`adopt`] and [`stranded`] identify files that no list names.
//!
//! If a run stops after writing a file and before updating the list, the
//! part is stale, and the next run publishes it again.

mod delta;
mod error;
mod file;
mod part;
mod stale;

pub use delta::expired::{DELTA_RETENTION, LEAST_DELTA_RETENTION, expired_files};
pub use delta::listed::DELTA_LOG;
pub use delta::schema::column_without_delta_type;
pub use delta::{DeltaLog, LogFinding, LogTimes, log_findings};
pub use error::{ExportError, Result};
pub use file::QueryFile;
pub use file::csv::write_csv_field;
pub use file::format::FileFormat;
pub use file::shape::ColumnTypes;
pub use part::adopt::{Adopted, Stranded, adopt, appended_unlisted, found_instead, stranded};
pub use part::draft::{ParkedDraft, PartDraft};
pub use part::request::{DayColumn, FileMode, Outcome, PublishRequest, PublishedPart};
pub use part::withdraw::EmptyPart;
pub use part::{publish, record, retire, sweep, sweep_retired, write_part};
pub use stale::{Reason, Stale, stale};
