//! Arguments and results of a load.

use std::path::Path;

use tidetable_layout::Layout;
use tidetable_store::Ids;
use tidetable_store::Table;
use tidetable_store::version::{Version, VersionEdit};

use crate::input::feed::Feed;
use crate::input::owed::LeftWindow;
use crate::input::plan::InputPlan;
use crate::input::prepare::Prepare;
use crate::input::read::RejectedRow;
use crate::stats::LoadStats;

/// Minimum memory budget of a load, in bytes: with less it would write a small SST for each piece of an input.
pub const MIN_LOAD_MEMORY: u64 = 16 << 20;
pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A load of one source into its tables, with its budget and where its progress goes.
pub struct Loader<'a> {
    /// Where the rows come from, such as the files of a source.
    pub feed: &'a dyn Feed,
    /// Derived columns, computed once for all tables; `None` if the source has none.
    pub derive: Option<&'a dyn Prepare>,
    /// The tables that hold the rows, each with its own plan of what to load.
    pub targets: Vec<LoadTarget<'a>>,
    /// Ids of new SSTs, unique among all loads of the tables.
    pub ids: &'a dyn Ids,
    /// Memory budget in bytes, approximate, for all tables together. It bounds the cells that wait to be sorted and
    /// written; a piece of an input is held whatever its size.
    pub memory: u64,
    /// The folder for temporary files, to which events are written that memory cannot hold. `None`: the root of the tables if
    /// that is a directory, else the system's folder for temporary files.
    pub temp_dir: Option<&'a Path>,
    /// Called for each rejected row of a new or changed input.
    pub on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    /// Called as bytes are read, and rows encoded and written.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// What a unit of a load is run with: the rows, the tables, and where rejected rows and progress go. It commits nothing.
pub struct UnitLoader<'a> {
    /// Where the rows come from, as in [`Loader::feed`].
    pub feed: &'a dyn Feed,
    /// Derived columns, computed once for all tables; `None` if the source has none.
    pub derive: Option<&'a dyn Prepare>,
    /// The tables, in the order of the targets of the load.
    pub tables: Vec<TableTarget<'a>>,
    /// Ids of new SSTs, unique among all units of all loads.
    pub ids: &'a dyn Ids,
    /// Memory budget in bytes, see [`Loader::memory`].
    pub memory: u64,
    /// The folder for temporary files, see [`Loader::temp_dir`].
    pub temp_dir: Option<&'a Path>,
    /// Called for each rejected row, on any thread; see [`Loader::on_reject`].
    pub on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    /// Called as the unit proceeds, on any thread; see [`Loader::on_progress`].
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// A table that a unit of a load writes SSTs of.
#[derive(Clone, Copy)]
pub struct TableTarget<'a> {
    /// The store's table, which gets the SSTs. They are invisible until an edit that names them is committed.
    pub table: &'a Table,
    /// How rows become cells, compiled for the columns of the feed.
    pub layout: &'a Layout,
    /// The `where` of the table; `None` if it takes all rows.
    pub filter: Option<&'a dyn Prepare>,
    /// The rule of each family that has one.
    pub gc: &'a [(String, String)],
}

impl<'a> Loader<'a> {
    /// The same, without what only planning needs.
    pub(crate) fn worker(&self) -> UnitLoader<'a> {
        let mut tables = Vec::with_capacity(self.targets.len());
        for LoadTarget { table, layout, filter, gc, .. } in &self.targets {
            tables.push(TableTarget { table, layout, filter: *filter, gc });
        }

        UnitLoader {
            feed: self.feed,
            derive: self.derive,
            tables,
            ids: self.ids,
            memory: self.memory,
            temp_dir: self.temp_dir,
            on_reject: self.on_reject,
            on_progress: self.on_progress,
        }
    }
}

/// A table to load into, with the plan of what to load.
#[derive(Clone, Copy)]
pub struct LoadTarget<'a> {
    /// The store's table, which gets the SSTs and the edit.
    pub table: &'a Table,
    /// How rows become cells, compiled for the columns of the feed.
    pub layout: &'a Layout,
    /// The `where` of the table; `None` if it takes all rows.
    pub filter: Option<&'a dyn Prepare>,
    /// The rule of each family that has one.
    pub gc: &'a [(String, String)],
    /// The version to load into, which the plan was made against.
    pub base: &'a Version,
    /// What to do with each input: load, read again, or leave.
    pub plan: &'a InputPlan,
}

/// Progress of a load: counts to be added up, called from any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Total to read, once it is known which inputs are read again to rebuild windows.
    ToRead {
        /// Bytes of all inputs that are read, as stored.
        bytes: u64,
    },
    /// Bytes of inputs read, and rows of them parsed, since the last call.
    Read {
        /// Bytes read since the last call, as stored.
        bytes: u64,
        /// Rows that fit their declared types, before filters.
        rows: u64,
    },
    /// Rows were encoded for a table, and wait to be sorted.
    Encoded {
        /// Rows since the last call, counted for each table.
        rows: u64,
    },
    /// Rows were sorted, and the SST that has them is being written.
    Wrote {
        /// Rows since the last call, counted for each table.
        rows: u64,
    },
}

/// Result of a load for one table, invisible until its edit is committed.
#[derive(Debug)]
pub struct Loaded {
    /// The edit to commit, against the version that was loaded into.
    pub edit: VersionEdit,
    /// Counts and times. Costs shared by several tables are attributed to the first.
    pub stats: LoadStats,
    /// Grown inputs whose windows were rebuilt, because later inputs write the same cells.
    pub overtaken: Vec<String>,
    /// Windows that stay as they are, because an input of theirs is gone.
    pub owed: Vec<LeftWindow>,
}
