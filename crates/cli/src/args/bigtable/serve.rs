//! `tidetable serve`.

use clap::Args;

use crate::args::parse::parse_memory;

/// Least of `--request-memory`, bytes: a batch of rows.
const LEAST_REQUEST_MEMORY: u64 = 1 << 20;

/// `tidetable serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen; port 0 takes one that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8086")]
    pub bind: String,
    /// Read the newest version of a table at each request, instead of the one at the start
    #[arg(long)]
    pub follow: bool,
    /// The only project whose names are accepted [default: any]
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<String>,
    /// The only instance whose names are accepted [default: any]
    #[arg(long, value_name = "INSTANCE")]
    pub instance: Option<String>,
    /// Refuse queries that Bigtable refuses: joins, subqueries, WITH, UNION, window functions, functions of other databases
    #[arg(long)]
    pub strict: bool,
    /// Memory that a request may hold; what is sent has no limit. A longer row is refused; sorts, groups and joins of a query
    /// that exceed it spill to temporary files
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_request_memory)]
    pub request_memory: u64,
}

fn parse_request_memory(text: &str) -> Result<u64, String> {
    let memory = parse_memory(text)?;
    if memory < LEAST_REQUEST_MEMORY {
        return Err("a request needs 1MiB at least".to_owned());
    }
    Ok(memory)
}
