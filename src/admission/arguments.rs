//! Arguments of `admission`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::webhook::WebhookArguments;

/// Arguments of `admission`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker admission --webhook-config-namespace garden
  gardener-extension-worker admission --garden-kubeconfig garden.yaml --webhook-config-mode url \\
    --webhook-config-url admission.extension.svc --webhook-config-namespace extension")]
pub struct AdmissionArguments {
    /// Kubeconfig of the garden, whose objects are reviewed. Without it the cluster of the pod is the garden.
    #[arg(long, env = "GARDEN_KUBECONFIG", value_name = "FILE")]
    pub(super) garden_kubeconfig: Option<PathBuf>,
    /// Only profiles and shoots of this provider; may be given several times. Without it, of every provider that is supported.
    #[arg(long = "provider-type", env = "PROVIDER_TYPE", value_name = "TYPE", value_delimiter = ',')]
    pub(super) provider_types: Vec<String>,
    /// Name of the Service, of the Secret and of both webhook configurations.
    #[arg(
        long,
        env = "WEBHOOK_CONFIG_NAME",
        value_name = "NAME",
        default_value = "gardener-extension-worker-admission"
    )]
    pub(super) webhook_config_name: String,
    /// Whether a person who edits a Shoot is warned which pools roll, and why.
    #[arg(long, env = "NODE_WARNINGS", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(super) node_warnings: bool,
    /// Whether a person who edits a CloudProfile is warned which pools of the garden's Shoots get other new nodes, or lose their image.
    /// It needs to list Shoots and NamespacedCloudProfiles.
    #[arg(long, env = "PROFILE_WARNINGS", value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(super) profile_warnings: bool,
    #[command(flatten)]
    pub(super) webhooks: WebhookArguments,
}
