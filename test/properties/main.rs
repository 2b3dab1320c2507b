//! What holds for every input, not only for the measured ones.
//!
//! * [`cloud_profiles`]: converted and shortened profiles make the same machines;
//! * [`conformance`]: what holds for every provider of machines;
//! * [`provider_config`]: which bytes of a provider config are hashed;
//! * [`lint_forecast`]: where pools go, in the words of lint and of the forecast;
//! * [`profiles`]: both halves of a CloudProfile: what admission writes is what it accepts;
//! * [`shoot_edits`]: nodes roll exactly where classes get other names;
//! * [`status_size`]: what a status takes, whatever is wrong with a Worker;
//! * [`versions`]: maintenance over time;
//! * [`zones`]: numbers and percentages of a pool spread over its zones;
//! * [`mutations`]: inputs that were damaged at random give objects or an error, never a panic.
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
