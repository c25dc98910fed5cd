//! `tidetable serve`: answers clients of Bigtable and of PostgreSQL until it is asked to end.

#[cfg(feature = "bigtable")]
mod bigtable;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "bigtable", feature = "postgres"))]
mod running;
mod shared;

use crate::args::{Global, Serve};
use crate::error::CliError;

/// Answers clients from the tables of the store until a signal ends it.
pub fn serve(global: &Global, args: &Serve) -> Result<(), CliError> {
    #[cfg(not(feature = "postgres"))]
    if args.postgres.postgres.is_some() {
        return Err(CliError::NotBuilt { feature: "postgres" });
    }
    #[cfg(not(feature = "bigtable"))]
    if shared::answers_bigtable(args) {
        return Err(CliError::NotBuilt { feature: "bigtable" });
    }

    #[cfg(any(feature = "bigtable", feature = "postgres"))]
    return running::serve(global, args);
    #[cfg(not(any(feature = "bigtable", feature = "postgres")))]
    {
        let _ = global;
        Ok(())
    }
}
