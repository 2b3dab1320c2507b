//! AWS: its images, from EC2's `DescribeImages`. Only with the feature `live-images`.
//!
//! * `client`: who asks, and how often;
//! * `credentials`: with what AWS's own configuration says;
//! * `request`: the call as EC2's Query API wants it;
//! * `answer`: what comes back; its images are read as those that `aws ec2 describe-images` prints.
//!
//! One call needs no SDK of 800 (docs/dependencies.md).

mod answer;
mod client;
mod credentials;
mod request;

pub use client::Ec2;
