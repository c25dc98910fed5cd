//! One published table a day or a query.
//!
//! [`publish`] runs the query of one part and puts its rows into one file, or into several if they are more than one may
//! hold. They appear or are replaced at once, and a part without rows has no file ([`EmptyPart`]); [`record`] lists what was
//! published; [`stale`] says which parts are not up to date. Outside readers see `exports/SENSOR_20180101/*.parquet`, never half a day.
//!
//! [`write_log`] writes a Delta log beside them.
//! [`QueryFile`] puts the rows of a query into a file anywhere.
//! [`adopt`] and [`stranded`] say what a file that no list names was published as.
//!
//! A run that stops between the file and the list leaves a list that says less than there is: the
//! part is stale, and the next run makes it again.

mod delta;
mod error;
mod file;
mod part;
mod stale;

pub use delta::write_log;
pub use error::{ExportError, Result};
pub use file::QueryFile;
pub use file::format::FileFormat;
pub use part::adopt::{Adopted, Stranded, adopt, found_instead, stranded};
pub use part::request::{FileMode, Outcome, PublishRequest, PublishedPart};
pub use part::withdraw::EmptyPart;
pub use part::{publish, record, sweep};
pub use stale::{Reason, Stale, stale};
