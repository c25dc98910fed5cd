//! `tidetable serve`.

use std::path::PathBuf;

use clap::Args;

use crate::args::parse::{Here, parse_age, parse_memory};

/// Least of `--request-memory`, bytes: a batch of rows.
const LEAST_REQUEST_MEMORY: u64 = 1 << 20;

/// Heading of options.
const POSTGRES: &str = "PostgreSQL";

/// `tidetable serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen for Bigtable's clients; port 0 takes one that is free [default: 127.0.0.1:8086, or nowhere with --postgres]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<String>,
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
    /// PostgreSQL's clients
    #[command(flatten)]
    pub postgres: ServePostgres,
}

/// How PostgreSQL's clients are served.
#[derive(Debug, Args)]
#[command(next_help_heading = POSTGRES)]
pub struct ServePostgres {
    /// Where to listen for PostgreSQL's clients, such as 127.0.0.1:5432; port 0 takes one that is free. Addresses that other
    /// machines reach need TLS and a password
    #[arg(long, value_name = "HOST:PORT")]
    pub postgres: Option<String>,
    /// The user who may connect [default: anyone]
    #[arg(long, value_name = "NAME", requires_all = ["postgres", "password_file"])]
    pub user: Option<String>,
    /// File whose first line is the password of the user, or its verifier as PostgreSQL stores it (SCRAM-SHA-256$..)
    #[arg(long, value_name = "FILE", requires = "user", value_parser = Here("a file with a password"))]
    pub password_file: Option<PathBuf>,
    /// File with the certificate of this server in PEM, with those up to its authority
    #[arg(long, value_name = "FILE", requires_all = ["postgres", "tls_key"], value_parser = Here("a file of certificates"))]
    pub tls_cert: Option<PathBuf>,
    /// File with its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_parser = Here("a file of certificates"))]
    pub tls_key: Option<PathBuf>,
    /// Clients at most; others are refused
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = parse_clients)]
    pub max_clients: usize,
    /// How long a statement may run, such as 30s or 10m; 0s for as long as it takes
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_age)]
    pub statement_timeout: i64,
}

fn parse_request_memory(text: &str) -> Result<u64, String> {
    let memory = parse_memory(text)?;
    if memory < LEAST_REQUEST_MEMORY {
        return Err("a request needs 1MiB at least".to_owned());
    }
    Ok(memory)
}

fn parse_clients(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a number of clients from 1 on".to_owned()),
        Ok(clients) => Ok(clients),
    }
}
