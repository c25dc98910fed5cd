//! TLS between the processes of a cluster. Ballista has hooks for it in its clients only; the servers are ours here.
//!
//! | module | contents |
//! |---|---|
//! | `files` | the files of a process: its authority, its certificate and its key |
//! | `config` | what they make: settings of clients and servers |
//! | `probe` | whether a connection is one to a server that accepts this process |
//! | `explain`, `handshake` | what a failed connection means, and what to do |
//! | `executor` | the server of an executor |

pub(crate) mod config;
pub(crate) mod executor;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod handshake;
pub(crate) mod probe;
