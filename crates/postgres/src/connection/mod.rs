//! A client, from its first message to its end.
//!
//! | module | contents |
//! |---|---|
//! | `startup` | encryption, the first message, the password |
//! | `session` | what a session has; its loop over messages |
//! | `simple`, `extended` | statements in both forms of the protocol |
//! | `run`, `change` | queries and cursors; statements that change the session |
//! | `rows` | rows of a query on their way to the client |
//! | `copy` | rows as a file |
//! | `shared` | what all clients share |
//! | `watch` | why a statement must stop: cancel, time limit, end of client or server |

mod change;
mod copy;
mod extended;
mod rows;
mod run;
mod session;
mod shared;
mod simple;
mod startup;
mod watch;

use std::sync::Arc;

use tidetable_serving::caught;
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;

#[cfg(test)]
pub(crate) use session::PANICS;
pub(crate) use shared::Shared;
pub(crate) use watch::{Cancels, Phase};

/// Answers a client until it ends, or the server does.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, phase: Receiver<Phase>) {
    // Rows are sent in large pieces, and answers should not wait for more.
    let _ = stream.set_nodelay(true);
    // A panic has been logged, and ends the connection.
    let started = caught(startup::start(&shared, stream, phase)).await;
    if let Ok(Some(session)) = started {
        session.serve().await;
    }
}
