//! tidetable and Bigtable: push, pull, diff, and a read-only server of the Data API.

pub mod proto;
