//! What a process that may be killed says.
//!
//! ```text
//! begin 7            step 7 is begun
//! ok 7 12 1514851200000000   it is done, and the newest version is now 12, of this logical time
//! at loads:link:manifest:after   a place was reached; nothing happens any more
//! ```

use std::io::Write;
use std::ops::Range;

use super::script::Scripted;
use crate::finding::{Finding, Result};
use crate::world::World;

/// What a process said after a step.
#[derive(Debug, Clone, Copy)]
pub(in crate::proofs) struct Said {
    pub version: u64,
    /// Logical time of the version, microseconds since the epoch.
    pub now: i64,
}

/// Reads an `ok` line; `None` for other lines.
///
/// # Errors
/// If it is not complete.
pub(in crate::proofs) fn done(line: &str) -> Result<Option<Said>> {
    let Some(step) = line.strip_prefix("ok ") else { return Ok(None) };
    let mut said = step.split(' ').skip(1);
    let version = said.next().and_then(|version| version.parse().ok());
    let now = said.next().and_then(|now| now.parse().ok());
    let said = version.zip(now).map(|(version, now)| Said { version, now });
    said.map(Some).ok_or_else(|| Finding::new(format!("a process said {line}")))
}

/// Says a line at once.
///
/// # Errors
/// If nobody listens.
pub(super) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Takes steps of the script of `seed`, and says so; `begun` is called with the name of each.
///
/// # Errors
/// Those of the store.
pub(in crate::proofs) fn take(world: &World, seed: u64, steps: Range<u64>, begun: impl Fn(&'static str)) -> Result<()> {
    let mut script = Scripted::new(seed);
    for number in 0..steps.end {
        let step = script.offer();
        if number < steps.start {
            continue;
        }

        say(&format!("begin {number}"))?;
        begun(step.name());
        let now = world.snapshot()?.map_or(script.begin(), |snapshot| snapshot.version().now);
        world.act(&step, &script.inputs, now)?;
        let (version, now) = match world.table().latest()? {
            Some(version) => (version.number, version.now),
            None => (0, now),
        };
        say(&format!("ok {number} {version} {now}"))?;
    }
    Ok(())
}
