//! Views of rows with options: `T(with_history => true)`, `rows(T, ..)`, `unpack(T, ..)`.

pub(crate) mod planner;
pub(crate) mod time_series;
