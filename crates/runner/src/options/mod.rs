//! What a run is asked for: its options, and who pushes its tables.

pub(crate) mod pusher;
pub(crate) mod run_options;
pub(crate) mod without;
