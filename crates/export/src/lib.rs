//! Publication of query results as files, by period or as a whole.
//!
//! [`publish`] runs the query of one part and writes its rows to one file, or to several above a size limit. They
//! appear or are replaced atomically, and a part without rows has no file ([`EmptyPart`]). [`record`] adds parts to the
//! list; [`stale`] says which parts are out of date. Readers see `exports/SENSOR_20180101/*.parquet`, never half a day.
//!
//! [`OpenLog`] is a table log beside them, Delta's or Iceberg's, and [`expired_files`] are those that its readers need no longer.
//! [`QueryFile`] writes the rows of a query to a file anywhere.
//! [`adopt`] and [`stranded`] identify files that no list names.
//!
//! If a run stops after writing a file and before updating the list, the
//! part is stale, and the next run publishes it again.

mod avro;
mod delta;
mod error;
mod file;
mod iceberg;
mod log;
mod part;
mod stale;
mod table;

pub use error::{ExportError, Result};
pub use file::QueryFile;
pub use file::csv::write_csv_field;
pub use file::format::FileFormat;
pub use file::shape::ColumnTypes;
pub use iceberg::catalog::{CatalogConflict, CatalogRequest, CatalogTable};
pub use log::expired::{expired_files, files_of_export, forget_expired};
pub use log::{LogFinding, LogPlace, OpenLog, column_without_table_type, log_findings};
pub use part::adopt::{Adopted, Stranded, adopt, appended_unlisted, found_instead, stranded};
pub use part::draft::{ParkedDraft, PartDraft};
pub use part::request::{DayColumn, FileMode, Outcome, PublishRequest, PublishedPart};
pub use part::withdraw::EmptyPart;
pub use part::{publish, record, retire, sweep, sweep_retired, write_part};
pub use stale::{Reason, Stale, stale};
pub use table::{LEAST_SNAPSHOT_RETENTION, LogTimes, Pinned, SNAPSHOT_RETENTION, TableLog};
