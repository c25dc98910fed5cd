//! Options of the servers of a cluster.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::parse::parse_memory;
use super::run::DEFAULT_MEMORY_TEXT;

/// `tidetable scheduler`
#[derive(Debug, Args)]
pub struct Scheduler {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:50050")]
    pub bind: SocketAddr,
    /// Name or address under which executors reach it [default: the address of --bind]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
}

/// `tidetable executor`
#[derive(Debug, Args)]
pub struct Executor {
    /// The scheduler, ballista://HOST:PORT [default: `url` of `cluster` in tidetable.toml]
    #[arg(long, value_name = "URL")]
    pub scheduler: Option<String>,
    /// Units of work at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub slots: Option<usize>,
    /// Address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Name or address under which the scheduler and runs reach it [default: the address of --bind]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Port for runs, which fetch answers there [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Port for the scheduler [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub scheduler_port: u16,
    /// Name in records and logs [default: the name of the machine and a number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where answers wait to be fetched; some kilobytes a unit [default: a folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// Approximate memory budget of a unit of work, such as 1GiB
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_MEMORY_TEXT.as_str(), value_parser = parse_memory)]
    pub memory: u64,
}
