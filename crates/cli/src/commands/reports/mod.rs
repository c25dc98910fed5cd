//! Commands that report on runs, tables and files.

pub(crate) mod data_by_time;
pub mod describe;
pub mod history;
pub mod inspect;
pub mod lineage;
pub mod overview;
pub mod rejects;
pub mod replay;
pub mod status;
mod table_page;
pub mod tables;
