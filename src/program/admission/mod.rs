//! Webhooks for the garden. They deny invalid CloudProfiles, NamespacedCloudProfiles and Shoot pools when they are
//! written, and copy flavors from the provider config to the generic part of a profile.
//!
//! ```text
//!  AdmissionReview ──► reviewers ── parent of a NamespacedCloudProfile, from the garden ──► check (pure) ──► Verdict
//! ```
//!
//! * `cloud_profile`, `namespaced`, `shoot` with `image`: the checks;
//! * `standing_problems`: errors that existed before an edit that only changes versions;
//! * `expirations`: warnings about expiring versions;
//! * `node_warnings`: effects of editing a Shoot on its nodes;
//! * `zone_by_zone`: names in the annotation of a Shoot that are no pools;
//! * `pool_warnings`: effects of editing a CloudProfile on pools, which `garden_shoots` reads;
//! * `flavors`: the patch that updates the generic part's flavors;
//! * `subject`, `refusal`: which objects need a review, and how errors are printed;
//! * `reviewers`, `garden`: select the check and read its inputs;
//! * `webhooks`, `arguments`: the webhook registration and the arguments of the command.
//!
//! The module `webhook` runs the process and its server. docs/contract.md#webhooks specifies paths, objects and
//! semantics.

mod arguments;
pub(crate) mod cloud_profile;
mod expirations;
mod flavors;
mod garden;
mod garden_shoots;
pub(crate) mod image;
pub(crate) mod namespaced;
pub(crate) mod node_warnings;
mod pool_warnings;
mod profile_reference;
mod refusal;
mod reviewers;
pub(crate) mod shoot;
mod standing_problems;
pub(crate) mod subject;
mod webhooks;
mod zone_by_zone;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

pub use arguments::AdmissionArguments;
use garden::Garden;
use garden_shoots::GardenShoots;
use reviewers::{CLOUD_PROFILES, GardenReviewer, NAMESPACED_CLOUD_PROFILES, SHOOTS};
use webhooks::{MUTATE, VALIDATE, webhooks};

use decisions::provider::Providers;
use runtime::cluster::client::client;
use runtime::cluster::config_files::ConfigFiles;
use runtime::cluster::seed;
use runtime::webhook::{self, Reviewer, Served, WebhookKind, WebhookMetrics};

/// Serves the webhooks for these providers until the process is stopped.
#[must_use]
pub fn run(arguments: AdmissionArguments, providers: Providers) -> ExitCode {
    let paths = [VALIDATE, MUTATE].map(str::to_owned).to_vec();
    let resources = &[CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES, SHOOTS];
    let metrics = WebhookMetrics::new("gardener_extension_worker_admission", paths, resources);
    webhook::run(&arguments.webhooks, &arguments.webhook_config_name, metrics, served(&arguments, providers))
}

async fn served(arguments: &AdmissionArguments, providers: Providers) -> anyhow::Result<Served> {
    let known: Vec<&str> = providers.profile_formats().map(|format| format.provider_type()).collect();
    let required: Vec<&str> = arguments.provider_types.iter().map(String::as_str).collect();
    if let Some(unknown) = required.iter().find(|required| !known.contains(required)) {
        anyhow::bail!("--provider-type {unknown}: there are {}", known.join(", "));
    }
    let files = arguments.webhooks.cluster.files();
    let files = match &arguments.garden_kubeconfig {
        None => files,
        Some(garden) => files.and(ConfigFiles::of(Some(garden))),
    };
    let cluster = arguments.webhooks.cluster.client().await?;
    let garden = match &arguments.garden_kubeconfig {
        None => cluster.clone(),
        Some(file) => {
            let config = seed::config(Some(file), None).await.context("--garden-kubeconfig")?;
            client(config).await.context("no client for the garden")?
        }
    };
    let shoots = arguments.profile_warnings.then(|| GardenShoots::new(garden.clone()));
    let webhooks = webhooks(if required.is_empty() { known } else { required }.into_iter());
    let routes = [(VALIDATE, WebhookKind::Validating), (MUTATE, WebhookKind::Mutating)].map(|(path, kind)| {
        let reviewer = GardenReviewer {
            kind,
            providers,
            garden: Garden::new(garden.clone()),
            warns_of_nodes: arguments.node_warnings,
            shoots: shoots.clone(),
        };
        (path.to_owned(), Arc::new(reviewer) as Arc<dyn Reviewer>)
    });
    Ok(Served { cluster, asking: garden, files, webhooks, routes: routes.into() })
}
