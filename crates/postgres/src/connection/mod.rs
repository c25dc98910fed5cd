//! A client, from its first message to its end.
//!
//! | module | contents |
//! |---|---|
//! | `startup` | encryption, the first message, the password |
//! | `session` | what a session has; its loop over messages |
//! | `simple`, `extended` | statements in both forms of the protocol |
//! | `run` | statements about the session, and queries |
//! | `rows` | rows of a query on their way to the client |
//! | `copy` | rows as a file |
//! | `shared` | what all clients share |
//! | `watch` | why a statement must stop: cancel, time limit, end of client or server |

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

use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;

pub(crate) use shared::Shared;
pub(crate) use watch::{Cancels, Phase};

/// Answers a client until it ends, or the server does.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, phase: Receiver<Phase>) {
    // Rows are sent in large pieces, and answers should not wait for more.
    let _ = stream.set_nodelay(true);
    if let Some(session) = startup::start(&shared, stream, phase).await {
        session.serve().await;
    }
}
