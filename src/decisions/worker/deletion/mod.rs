//! Deletion of a Worker: what its machines need until they are gone, and what is still pending.

pub mod deletion_prerequisites;
pub mod pending_deletion;
