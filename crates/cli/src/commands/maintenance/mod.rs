//! Commands that keep a store in order, or take something out of it.

pub mod backup;
pub mod clean;
pub mod compact;
pub mod delete;
pub mod doctor;
pub mod repair;
pub mod vacuum;
pub mod verify;
