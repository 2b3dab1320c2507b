//! Objects for images on a real API server: definitions, schemas, and the controllers that maintain them.
//! `cargo test --test image_objects`.
//!
//! ```text
//! lookups      images are discovered, enriched, marked and cleaned up
//! selections   first resolutions and upgrades, also with two controllers
//! templates    AWSMachineTemplates, with the definitions of Cluster API's provider for AWS, without its webhook
//! live         lookups that query EC2 themselves
//! large        20,000 images
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod large;
mod live;
mod lookups;
mod selections;
mod templates;
