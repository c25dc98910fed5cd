//! What the servers of one process share.

#[cfg(any(feature = "bigtable", feature = "postgres"))]
pub(super) use parts::{Served, reachable, versions};

use crate::args::Serve;

/// Whether the clients of Bigtable are answered: unless those of PostgreSQL are, and no address is given for the others.
pub(super) fn answers_bigtable(args: &Serve) -> bool {
    args.bind.is_some() || args.postgres.postgres.is_none()
}

#[cfg(any(feature = "bigtable", feature = "postgres"))]
mod parts {
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;

    use tidetable_serving::Tables;
    use tokio::runtime::Handle;

    use crate::args::{Global, Serve};

    /// What the servers of one process share.
    pub(in crate::commands::serve) struct Served<'a> {
        pub(in crate::commands::serve) global: &'a Global,
        pub(in crate::commands::serve) args: &'a Serve,
        pub(in crate::commands::serve) tables: Arc<Tables>,
        /// Names of the tables, or that there are none yet.
        pub(in crate::commands::serve) names: String,
        /// The root of the store.
        pub(in crate::commands::serve) root: String,
        /// The runtime of queries.
        pub(in crate::commands::serve) queries: Handle,
    }

    /// Which versions are served.
    pub(in crate::commands::serve) fn versions(args: &Serve) -> &'static str {
        if args.follow { "newest version at each request" } else { "version of now" }
    }

    /// The address for clients of this machine: one that means all addresses is none to connect to.
    pub(in crate::commands::serve) fn reachable(address: SocketAddr) -> SocketAddr {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            ip => ip,
        };
        SocketAddr::new(ip, address.port())
    }
}
