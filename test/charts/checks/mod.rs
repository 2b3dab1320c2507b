//! What an operator would notice, one file each.

mod admission;
mod alerts;
mod examples;
mod images;
mod policies;
mod releases;
mod rendered;
mod runs;
mod values;
