//! Webhooks of the garden: what is wrong with CloudProfiles, NamespacedCloudProfiles and pools of Shoots is refused where a
//! person writes it, and what follows from a provider's half of a profile is written into the other half.
//!
//! ```text
//!  AdmissionReview ──► reviewers ── parent of a NamespacedCloudProfile, from the garden ──► judgement (pure) ──► Verdict
//! ```
//!
//! * `cloud_profile`, `namespaced`, `shoot` with `image`: the judgements;
//! * `flavors`: the patch that keeps core's half like the provider's;
//! * `subject`, `refusal`: what has to be looked at; errors as a person reads them;
//! * `reviewers`, `garden`: which judgement, with what;
//! * `webhooks`, `arguments`, `process`: what is registered, and the process around all of it.
//!
//! The server under it is `runtime::webhook`. Paths, objects and semantics are those of gardener-core
//! section 2.9.

mod arguments;
mod cloud_profile;
mod flavors;
mod garden;
mod image;
mod metrics;
mod namespaced;
mod process;
mod profile_reference;
mod refusal;
mod reviewers;
mod shoot;
mod subject;
mod webhooks;

use std::process::ExitCode;

use anyhow::Context;

pub use arguments::AdmissionArguments;

use crate::provider::Providers;
use crate::runtime::logs;

/// Serves the webhooks of these providers until it is told to stop.
#[must_use]
pub fn run(arguments: AdmissionArguments, providers: Providers) -> ExitCode {
    match start(&arguments, providers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "logs may not be there yet")]
            {
                eprintln!("{error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &AdmissionArguments, providers: Providers) -> anyhow::Result<()> {
    let logs = logs::begin(arguments.log_level, arguments.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    let result = runtime.block_on(process::run(arguments, providers, logs));
    // Nothing that is still under way may hold up the end.
    runtime.shutdown_background();
    result
}
