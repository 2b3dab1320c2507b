//! `images fetch`: clouds are asked for their images, over real HTTP. `cargo test --test live_images`.
//!
//! * [`ec2`]: signatures, pages, trouble, against a stand-in of our own; owners and names against moto;
//! * [`azure`]: galleries of the resource manager, against its stand-in;
//! * [`glance`]: images of OpenStack, against its stand-in;
//! * [`person`]: who runs the program, in a folder, with an environment that only the test knows.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod azure;
mod ec2;
mod glance;
mod person;
