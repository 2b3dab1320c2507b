//! `images fetch`: queries clouds for their images, over real HTTP. `cargo test --test live_images`.
//!
//! * [`ec2`]: signatures, pages and errors, against our own stand-in; owners and names, against moto;
//! * [`azure`]: galleries of the resource manager, against its stand-in;
//! * [`glance`]: images of OpenStack, against its stand-in;
//! * [`person`]: a user who runs the program in a folder, with an environment that is specific to the test.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test")]

mod azure;
mod ec2;
mod glance;
mod person;
