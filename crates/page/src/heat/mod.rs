//! Heatmaps: colours, pictures, and the form in which a page holds values.

pub(crate) mod coarse;
pub(crate) mod colours;
pub(crate) mod map;
pub(crate) mod picture;
