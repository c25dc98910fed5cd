//! Commands that ask Bigtable.

pub mod diff;
pub mod new;
pub mod pull;
pub mod push;
pub mod run;

pub use self::diff::diff;
pub use self::pull::pull;
pub use self::push::push;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use tidetable_bigtable::client::{Client, ClientOptions, Endpoints, Target};
use tokio::runtime::Handle;

use crate::args::Service;
use crate::error::CliError;

/// A client of the endpoints that the environment names.
pub(crate) fn client(service: &Service, runtime: &Handle) -> Result<Client, CliError> {
    let endpoints = Endpoints::of_environment(|name| std::env::var(name).ok());
    // Connections belong to the runtime.
    let _inside = runtime.enter();
    let options = ClientOptions {
        app_profile: service.app_profile.clone().unwrap_or_default(),
        patience: Duration::from_micros(u64::try_from(service.patience).unwrap_or_default()),
        ..ClientOptions::new(endpoints, random)
    };
    Ok(Client::new(options)?)
}

/// A number from 0 to 1.
fn random() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1_u64 << 53) as f64
}

/// An instance or a table of it.
pub(crate) fn target(text: &str) -> Result<Target, CliError> {
    text.parse::<Target>().map_err(|error| CliError::Bigtable(error.into()))
}
