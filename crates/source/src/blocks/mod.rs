//! Files of blocks with a schema in front of them, read from the start on: Arrow IPC and Avro.

mod avro;
mod input;
mod ipc;
mod ipc_check;
mod opened;
#[cfg(test)]
mod tests;

pub(crate) use avro::{AvroBlocks, AvroPlan, Blocks};
pub(crate) use input::BlockInput;
pub(crate) use ipc::IpcMessages;
pub use ipc_check::check_arrow_lengths;
pub(crate) use opened::OpenedBlocks;
