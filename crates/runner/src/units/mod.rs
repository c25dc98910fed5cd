//! Units of work: the parts of a run that may be done by another process on another machine.
//!
//! A [`Unit`] is a value: it names the job, the run and what to do, and holds no handle, no secret and no SQL. Whoever runs
//! it opens the root and the job itself, reads and writes storage under fresh names, and returns an [`Answer`]. It commits
//! nothing: the driver, which planned the units, checks the answers, commits once a table, and alone switches what is
//! published. A run in one process makes the same units and settles the same answers; only the way in between differs.
//!
//! | module | contents |
//! |---|---|
//! | `work` | what units do and return |
//! | `wire` | units and answers as bytes, and the build that may read them |
//! | `carrier` | what brings units to other processes |
//! | `load`, `publish`, `compact` | the kinds of units |
//! | `worker` | runs units that another process planned |

pub(crate) mod build;
pub(crate) mod carrier;
pub(crate) mod columns;
pub(crate) mod compact;
pub(crate) mod load;
pub(crate) mod params;
pub(crate) mod publish;
pub(crate) mod reference;
pub(crate) mod rejects;
pub(crate) mod tally;
pub(crate) mod wire;
pub(crate) mod work;

pub use crate::fault::unit_failure::{CarryError, LostUnit, UnitFailure};
pub use build::build;
pub use carrier::{Carried, UnitCarrier};
pub use wire::{Answer, Unit};
