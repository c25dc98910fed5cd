//! `tidetable cache`.

use std::io::Write;

use tidetable_runner::{CACHE_SIZE, cache_directory, open_cache};

use crate::args::{Cache, Global, Output};
use crate::commands::project_of_store;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};

/// Shows or empties the cache of a root in a bucket.
pub fn cache(global: &Global, args: &Cache) -> Result<(), CliError> {
    let project = project_of_store(global)?;
    let cache = open_cache(&project);
    let directory = cache.as_ref().and_then(|_| cache_directory(&project)).map(|path| path.display().to_string());

    let usage = match &cache {
        Some(cache) if args.empty => cache.empty(),
        Some(cache) => cache.usage(),
        None => Ok(Default::default()),
    };
    let usage = usage.map_err(|source| CliError::File { path: directory.clone().unwrap_or_default(), source })?;
    let size = if cache.is_some() { project.cache.size.unwrap_or(CACHE_SIZE) } else { 0 };

    let mut out = sentences(global.output);
    match (global.output, &directory) {
        (Output::Table, Some(directory)) => {
            let verb = if args.empty { "removed" } else { "holds" };
            let files = count(usage.files, "file");
            writeln!(out, "{directory}: {verb} {files} of {}, {} at most", bytes(usage.bytes), bytes(size))?;
        }
        (Output::Table, None) => writeln!(out, "there is no cache: it is for roots in a bucket, with a size above 0")?,
        _ => {
            let mut rows = ResultRows::of(objects::CACHED);
            rows.push(row![directory, size, usage.files, usage.bytes]);
            rows.write(global.output, &mut out)?;
        }
    }
    Ok(out.flush()?)
}
