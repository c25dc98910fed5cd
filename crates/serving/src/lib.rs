//! What the read-only servers of a store share.
//!
//! | module | contents |
//! |---|---|
//! | `tables` | the tables of a store, each in a pinned version or in the newest |
//! | `pins` | renewing the pins while a server runs, and removing them when it ends |
//! | `tasks` | tasks that end when nobody waits, and whose panics are errors |
//! | `listen` | the address of a server |
//! | `drain` | how long requests may go on when a server is asked to end |

mod drain;
mod error;
mod listen;
mod pins;
mod tables;
mod tasks;

pub use drain::{GRACE, NOTICE};
pub use error::{Result, ServingError};
pub use listen::listen;
pub use pins::{RenewedPins, release_pins};
pub use tables::{Tables, blocking};
pub use tasks::{Task, caught};
