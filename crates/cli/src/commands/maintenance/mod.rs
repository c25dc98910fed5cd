//! Commands that maintain a store, or remove something from it.

pub mod backup;
pub mod cache;
pub mod clean;
pub mod compact;
pub mod copy;
pub mod delete;
pub mod doctor;
pub mod repair;
pub mod vacuum;
pub mod verify;
