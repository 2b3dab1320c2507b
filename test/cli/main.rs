//! The user interface of the command line: tables, JSON, exit codes and messages.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod binary;
mod broken;
mod cloudprofile;
mod consistency;
mod definitions;
mod diagnose;
mod diagnose_rolls;
mod documents;
mod evidence;
mod exit_codes;
mod explain;
mod failed_machines;
mod fix_in_two_days;
mod forecast_groups;
mod forms;
mod golden;
mod how_to;
mod images;
mod json;
mod large_documents;
mod live_landscape;
mod lock_updates;
mod objects;
mod preview;
mod preview_cache;
mod preview_capacity;
mod preview_ci;
mod preview_git;
mod preview_refusals;
mod preview_shoots;
mod reference;
mod refused;
mod rollouts;
mod still_on;
mod takeover;
mod terminal;
mod test_filters;
mod versions;
mod watching;
mod why;
mod why_rolls;
