//! AWS images from EC2's `DescribeImages`. Only with the feature `live-images`.
//!
//! * `client`: sends requests, with retries;
//! * `credentials`: credentials from AWS's own configuration;
//! * `request`: the call in the form of EC2's Query API;
//! * `answer`: the response. Its images are decoded like the output of `aws ec2 describe-images`.
//!
//! A single call does not justify an SDK for 800 (docs/dependencies.md).

mod client;
mod credentials;
mod request;
mod response;

pub use client::Ec2;
