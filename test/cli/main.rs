//! What a person sees on the command line: tables, JSON, exit codes, messages.

mod binary;
mod consistency;
mod explain;
mod golden;
mod json;
mod reference;
mod terminal;
mod why;
