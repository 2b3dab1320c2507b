//! Images by flavor: what people who keep images were promised, what they have reported, and laws that hold for every input.
//!
//! * [`proposal`]: the goals, stories and open questions of the proposal "AMI resolution with flavors" for Cluster API on AWS;
//! * [`objects`]: the same for objects of a cluster;
//! * [`reported`]: cases that users of such look-ups have met;
//! * [`profiles`]: CloudProfiles that are filled and checked;
//! * [`forms`]: the same, however they are written;
//! * [`listings`]: what the tools of clouds print; [`attributes`]: filters by the attributes of EC2;
//! * [`needs`]: what is unused is needed by nobody, over random landscapes;
//! * [`variants`]: images of different products under one flavor;
//! * [`names`]: each name that a lookup can produce is of its own flavor, or of none.

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
