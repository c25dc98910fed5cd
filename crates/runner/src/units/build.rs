//! Identity of this build: units are run only by the build that planned them.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use xxhash_rust::xxh3::Xxh3;

/// Bytes read at a time.
const BUFFER: usize = 1 << 20;

/// xxh3-128 of the running program, hexadecimal, after its version.
///
/// # Errors
/// If the program cannot read its own file.
pub fn build() -> io::Result<&'static str> {
    static BUILD: OnceLock<String> = OnceLock::new();
    if let Some(build) = BUILD.get() {
        return Ok(build);
    }

    let mut file = File::open(std::env::current_exe()?)?;
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; BUFFER]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    let build = format!("{}-{:032x}", env!("CARGO_PKG_VERSION"), hash.digest128());
    Ok(BUILD.get_or_init(|| build))
}
