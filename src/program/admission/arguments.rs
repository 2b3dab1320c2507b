//! Arguments of `admission`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use runtime::webhook::WebhookArguments;

/// Arguments of `admission`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  gardener-extension-worker admission --webhook-config-namespace garden
  gardener-extension-worker admission --garden-kubeconfig garden.yaml --webhook-config-mode url \\
    --webhook-config-url admission.extension.svc --webhook-config-namespace extension")]
pub struct AdmissionArguments {
    /// Kubeconfig of the garden, whose objects the webhooks review. By default, the pod's cluster is the garden.
    #[arg(long, env = "GARDEN_KUBECONFIG", value_name = "FILE")]
    pub(super) garden_kubeconfig: Option<PathBuf>,
    /// Providers whose CloudProfiles and Shoots the webhooks review. Repeatable. By default, all supported providers.
    #[arg(long = "provider-type", env = "PROVIDER_TYPE", value_name = "TYPE", value_delimiter = ',')]
    pub(super) provider_types: Vec<String>,
    /// Name of the Service, the Secret and both webhook configurations.
    #[arg(
        long,
        env = "WEBHOOK_CONFIG_NAME",
        value_name = "NAME",
        default_value = "gardener-extension-worker-admission"
    )]
    pub(super) webhook_config_name: String,
    /// Warn users who edit a Shoot about the pools that roll, with the cause.
    #[arg(long, env = "NODE_WARNINGS", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(super) node_warnings: bool,
    /// Warn users who edit a CloudProfile about pools of the garden's Shoots whose new nodes differ or that lose their
    /// image. Requires permission to list Shoots and NamespacedCloudProfiles.
    #[arg(long, env = "PROFILE_WARNINGS", value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(super) profile_warnings: bool,
    #[command(flatten)]
    pub(super) webhooks: WebhookArguments,
}
