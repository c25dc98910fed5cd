//! Who may connect: the password of the user, TLS, and which addresses need them.

mod password;
mod rule;
mod scram;
mod tls;

pub(crate) use password::Password;
pub(crate) use rule::check_address;
pub(crate) use scram::{MECHANISM, Scram};
pub(crate) use tls::acceptor;
