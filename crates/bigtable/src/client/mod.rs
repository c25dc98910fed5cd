//! A client of Bigtable: of the service, an emulator, or `tidetable serve`.

mod admin;
mod backoff;
mod connection;
mod endpoints;
pub(crate) mod kinds;
mod mutate;
mod read;
mod repeat;
pub(crate) mod rules;

pub use crate::names::{InstanceName, NameError, TableName, Target};
pub use crate::row::{Cell, Row};
pub use crate::row_merger::{ChunkError, RowMerger};
pub use admin::{SampledKey, SourceFamily, SourceTable};
pub use backoff::is_transient;
pub use connection::{Client, ClientOptions};
pub use endpoints::{ADMIN_OVERRIDE, DATA_OVERRIDE, EMULATOR, Endpoints, UNIVERSE};
pub use read::{ReadQuery, RowStream};
pub(crate) use repeat::Repeat;
