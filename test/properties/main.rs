//! Properties that hold for every input, not only for the measured ones.
//!
//! * [`cloud_profiles`]: converted and shortened profiles produce the same machines;
//! * [`conformance`]: requirements for every provider of machines;
//! * [`provider_config`]: which bytes of a provider config are hashed;
//! * [`lint_forecast`]: lint and the forecast move pools to the same versions;
//! * [`profiles`]: both halves of a CloudProfile: admission accepts what it writes;
//! * [`shoot_edits`]: nodes roll exactly where class names change;
//! * [`status_size`]: size limits of a status, whatever is wrong with a Worker;
//! * [`versions`]: maintenance over time;
//! * [`zones`]: numbers and percentages of a pool spread over its zones;
//! * [`mutations`]: randomly damaged inputs produce objects or an error, never a panic.
//!
//! `PROPTEST_CASES` sets the number of random cases.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod cloud_profiles;
mod conformance;
mod edits;
mod lint_forecast;
mod mutations;
mod parity_inputs;
mod profiles;
mod provider_config;
mod shoot_edits;
mod status_size;
mod version_worlds;
mod versions;
mod zones;
