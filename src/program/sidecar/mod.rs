//! Webhook of a seed that adds the provider's sidecar to machine-controller-manager: the container that manages
//! machines at the cloud. gardenlet deploys machine-controller-manager without it (docs/contract.md#its-sidecar).
//!
//! ```text
//!  Deployment, VerticalPodAutoscaler ──► injector ── the Shoot and its credentials, from the seed ──► injection ──► patch
//! ```
//!
//! * `container`: the container and its volume; pure;
//! * `injection`: the patch that adds them to an object; pure;
//! * `surroundings`: properties of a shoot that affect the container;
//! * `injector`: handles requests;
//! * `webhooks`, `arguments`: the webhook registration and the arguments of the command.

mod arguments;
pub(crate) mod container;
pub(crate) mod injection;
mod injector;
pub(crate) mod surroundings;
mod webhooks;

use std::process::ExitCode;
use std::sync::Arc;

pub use arguments::SidecarArguments;
use container::Sidecar;
use injector::Injector;
use webhooks::{RESOURCES, path, webhook};

use decisions::provider::Providers;
use runtime::webhook::{self as server, Reviewer, Routes, Served, WebhookKind, WebhookMetrics};

/// Serves the webhook for these providers until the process is stopped.
#[must_use]
pub fn run(arguments: SidecarArguments, providers: Providers) -> ExitCode {
    let paths = arguments.images.iter().map(|image| path(&image.provider_type)).collect();
    let metrics = WebhookMetrics::new("gardener_extension_worker_sidecar", paths, RESOURCES);
    server::run(&arguments.webhooks, &arguments.webhook_config_name, metrics, served(&arguments, providers))
}

async fn served(arguments: &SidecarArguments, providers: Providers) -> anyhow::Result<Served> {
    let sidecars = sidecars(arguments, providers)?;
    let files = arguments.webhooks.cluster.files();
    let cluster = arguments.webhooks.cluster.client().await?;
    let webhooks = sidecars.iter().map(|sidecar| (WebhookKind::Mutating, webhook(&sidecar.provider_type))).collect();
    let routes: Routes = sidecars
        .into_iter()
        .map(|sidecar| {
            let path = path(&sidecar.provider_type);
            (path, Arc::new(Injector { sidecar, client: cluster.clone() }) as Arc<dyn Reviewer>)
        })
        .collect();
    Ok(Served { asking: cluster.clone(), cluster, files, webhooks, routes })
}

/// One sidecar per image. Each image needs a supported provider.
fn sidecars(arguments: &SidecarArguments, providers: Providers) -> anyhow::Result<Vec<Sidecar>> {
    let mut sidecars: Vec<Sidecar> = Vec::new();
    for image in &arguments.images {
        let provider_type = &image.provider_type;
        let provider = providers.of_machines.iter().find(|provider| provider.provider_type() == provider_type);
        let Some(provider) = provider else {
            let known: Vec<&str> = providers.worker_types().collect();
            anyhow::bail!("--image {provider_type}: there are {}", known.join(", "));
        };
        if sidecars.iter().any(|sidecar| sidecar.provider_type == *provider_type) {
            anyhow::bail!("--image {provider_type}: only one image for each type");
        }
        sidecars.push(Sidecar {
            provider_type: provider_type.clone(),
            image: image.reference.clone(),
            arguments: provider.sidecar_arguments(),
        });
    }
    Ok(sidecars)
}
