//! What a user would notice, one file each.

mod at_once;
mod broken_pool;
mod class_images;
mod clouds;
mod command_line;
mod create;
mod delete;
mod delete_repairs;
mod failed_machines;
mod foreign_workers;
mod move_seed;
mod nothing_differs;
mod one_cloud;
mod planned_rolls;
mod reconcile_on_change;
mod remove_pool;
mod restart;
mod roll;
mod scale;
mod scale_sets;
mod secrecy;
mod server_groups;
mod status_size;
mod steady;
mod undecodable;
mod waiting;
