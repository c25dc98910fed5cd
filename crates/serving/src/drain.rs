//! How a server ends.

use std::time::Duration;

/// For how long requests may go on after a server was asked to end; it takes no new ones meanwhile.
pub const GRACE: Duration = Duration::from_secs(10);

/// For how long requests that go on after [`GRACE`] have to notice that they are cut off.
pub const NOTICE: Duration = Duration::from_secs(2);
