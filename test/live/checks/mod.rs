//! What a user would notice, one file each.

mod at_once;
mod at_rest;
mod aws;
mod broken_pool;
mod command_line;
mod create;
mod delete;
mod delete_repairs;
mod failed_machines;
mod foreign_workers;
mod move_seed;
mod nothing_differs;
mod remove_pool;
mod restart;
mod roll;
mod scale;
mod scale_sets;
mod secrecy;
mod unasked;
mod undecodable;
mod waiting;
