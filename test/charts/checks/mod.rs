//! One file for each behaviour that an operator notices.

mod admission;
mod alerts;
mod examples;
mod images;
mod policies;
mod releases;
mod rendered;
mod runs;
mod values;
