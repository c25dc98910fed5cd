//! Pins of the versions that a server reads, as long as it runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::tables::Tables;

/// How often pins are renewed; they expire after an hour.
const RENEWAL: Duration = Duration::from_secs(1_200);

/// A task that renews the pins of tables until it is dropped.
#[derive(Debug)]
pub struct RenewedPins(JoinHandle<()>);

impl RenewedPins {
    /// Starts the task in the tokio runtime of the caller.
    pub fn of(tables: &Arc<Tables>) -> Self {
        Self(tokio::spawn(renew(Arc::clone(tables))))
    }
}

impl Drop for RenewedPins {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Renews pins for ever.
async fn renew(tables: Arc<Tables>) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let tables = Arc::clone(&tables);
        // Without them a vacuum may remove what is served, and reads then say so.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || tables.renew()).await {
            tracing::warn!("cannot renew the pins of the versions that are served: {error}");
        }
    }
}

/// Removes the pins of tables, once nothing is served any more. What fails is logged: pins expire by themselves.
pub async fn release_pins(tables: Arc<Tables>) {
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || tables.release()).await {
        tracing::warn!("cannot remove the pins of the versions that were served, which expire within an hour: {error}");
    }
}
