//! The steps that delete a Worker, with and without force.

pub(crate) mod delete;
pub(crate) mod delete_objects;
pub(crate) mod force_deletion;
