//! Clients of object stores, for sources and for the root of a store.

use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{ObjectStore, parse_url_opts};
use tokio::runtime::Handle;
use url::Url;

use crate::error::SourceError;
use crate::storage::Secret;

/// Parts of the names of credential options.
const CREDENTIALS: [&str; 5] = ["key", "token", "secret", "sas", "service_account"];

/// Opens the object store of `url` (`s3://`, `gs://`, `az://` and their other spellings) and returns it with the key of the
/// URL's path. `settings` are options of `object_store`; the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`) sets the others,
/// but no credentials if `settings` has one. Requests run on the runtime of `handle`.
///
/// # Errors
/// [`SourceError::UnsupportedUrl`], [`SourceError::StoreSettings`]; neither shows a setting.
pub fn open_object_store(
    url: &str,
    settings: &[(String, Secret)],
    handle: &Handle,
) -> Result<(Arc<dyn ObjectStore>, Key), SourceError> {
    let unsupported = || SourceError::UnsupportedUrl { url: url.to_owned() };
    let parsed = Url::parse(url).map_err(|_| unsupported())?;
    if !matches!(parsed.scheme(), "s3" | "s3a" | "gs" | "az" | "adl" | "azure" | "abfs" | "abfss") {
        return Err(unsupported());
    }
    // Halves of two credentials make none.
    let own = settings.iter().any(|(name, _)| CREDENTIALS.iter().any(|word| name.contains(word)));
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !own || CREDENTIALS.iter().all(|word| !name.to_ascii_lowercase().contains(word)));
    let settings = settings.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    // Clients of a store look for the runtime that drives them.
    let _inside = handle.enter();
    let (store, key) = parse_url_opts(&parsed, environment.chain(settings))
        .map_err(|source| SourceError::StoreSettings { url: url.to_owned(), source })?;
    Ok((Arc::from(store), key))
}
