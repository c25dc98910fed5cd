//! Commands that maintain a store, or remove something from it.

pub mod backup;
pub mod cache;
pub mod clean;
pub mod compact;
pub mod copy;
pub mod delete;
pub mod doctor;
pub mod drop;
pub mod repair;
pub mod vacuum;
pub mod verify;

use std::io::{self, Write};

use crate::terminal::printable::Printed;

/// Asks for confirmation of what is to be removed, on the terminal.
fn agreed(what: &str) -> io::Result<bool> {
    let mut err = Printed::new(io::stderr().lock(), true);
    write!(err, "{what}? [y/N] ")?;
    err.flush()?;

    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
