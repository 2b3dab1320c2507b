//! Images by flavor: promises to users who maintain images, cases that they have reported, and laws that hold for every
//! input.
//!
//! * [`proposal`]: the goals, stories and open questions of the proposal "AMI resolution with flavors" for Cluster API
//!   on AWS;
//! * [`objects`]: the same for objects in a cluster;
//! * [`reported`]: cases that users of such lookups have reported;
//! * [`profiles`]: CloudProfiles that are filled and checked;
//! * [`forms`]: the same for every form of a profile;
//! * [`listings`]: output of the clouds' tools; [`attributes`]: filters by attributes of EC2;
//! * [`needs`]: no user needs an unused version, over random landscapes;
//! * [`variants`]: images of different products under one flavor;
//! * [`names`]: each name that a lookup can produce belongs to its own flavor, or to none.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod amis;
mod attributes;
mod forms;
mod listings;
mod names;
mod needs;
mod objects;
mod profiles;
mod proposal;
mod reported;
mod variants;
