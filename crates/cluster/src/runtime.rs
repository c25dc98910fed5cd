//! What Ballista's sessions and tasks run in. Units read and write by their worker, so a plan has no business with files: whoever
//! reaches a scheduler could otherwise have a plan read any file of an executor's machine.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::object_store::ObjectStore;
use datafusion::prelude::SessionConfig;
use url::Url;

/// A registry that has no object store and takes none, not even that of local files.
#[derive(Debug)]
struct NoStores;

impl ObjectStoreRegistry for NoStores {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        Err(DataFusionError::Execution(format!("plans read no files here: {url} is refused")))
    }
}

/// A runtime whose plans read no files.
///
/// # Errors
/// If DataFusion cannot make one.
pub(crate) fn runtime_without_files() -> Result<Arc<RuntimeEnv>> {
    RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(NoStores)).build_arc()
}

/// A session with the settings `config`, whose plans read no files.
///
/// # Errors
/// As [`runtime_without_files`].
pub(crate) fn session_without_files(config: SessionConfig) -> Result<SessionState> {
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime_without_files()?);
    Ok(builder.with_default_features().build())
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{CsvReadOptions, SessionContext};

    use super::*;

    #[test]
    fn every_url_is_refused() {
        for url in ["file:///etc/passwd", "s3://bucket/file", "http://127.0.0.1/file"] {
            let error = NoStores.get_store(&Url::parse(url).unwrap()).unwrap_err().to_string();
            assert!(error.contains(url), "{error}");
        }
    }

    #[tokio::test]
    async fn a_session_reads_no_file_of_this_machine() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.csv");
        std::fs::write(&file, "n\n1\n").unwrap();

        let state = session_without_files(SessionConfig::new()).unwrap();
        let context = SessionContext::new_with_state(state);
        let read = context.read_csv(file.display().to_string(), CsvReadOptions::new()).await;
        assert!(read.unwrap_err().to_string().contains("plans read no files here"));
    }
}
