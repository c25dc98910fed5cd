//! `tidetable serve`.

use clap::Args;

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
}
