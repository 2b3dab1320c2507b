//! Arguments of `sidecar`.

use std::str::FromStr;

use clap::Args;

use runtime::webhook::WebhookArguments;

/// Image of a provider's sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SidecarImage {
    /// `spec.type` of Workers: `azure`.
    pub(super) provider_type: String,
    /// Image reference for the container runtime.
    pub(super) reference: String,
}

impl FromStr for SidecarImage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((provider_type, reference)) if !provider_type.is_empty() && !reference.trim().is_empty() => {
                Ok(Self { provider_type: provider_type.to_owned(), reference: reference.trim().to_owned() })
            }
            _ => Err("a provider type and an image such as azure=registry.example/machine-controller:v1".to_owned()),
        }
    }
}

/// Arguments of `sidecar`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  gardener-extension-worker sidecar --image azure=registry.example/mcm-provider-azure:v0.20.1 \\
    --webhook-config-namespace extension-worker")]
pub struct SidecarArguments {
    /// Sidecar image for the shoots of a provider. Repeatable. Shoots of other providers are left unchanged.
    #[arg(long = "image", env = "SIDECAR_IMAGE", value_name = "TYPE=IMAGE", value_delimiter = ',', required = true)]
    pub(super) images: Vec<SidecarImage>,
    /// Name of the Service, the Secret and the webhook configuration.
    #[arg(long, env = "WEBHOOK_CONFIG_NAME", value_name = "NAME", default_value = "gardener-extension-worker-sidecar")]
    pub(super) webhook_config_name: String,
    #[command(flatten)]
    pub(super) webhooks: WebhookArguments,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_of_a_provider() {
        let image: SidecarImage = "azure=registry.example:5000/a/b:v1@sha256:00=".parse().unwrap();
        assert_eq!(
            (image.provider_type.as_str(), image.reference.as_str()),
            ("azure", "registry.example:5000/a/b:v1@sha256:00=")
        );
        for wrong in ["", "azure", "azure=", "azure= ", "=image"] {
            assert!(wrong.parse::<SidecarImage>().is_err(), "{wrong:?}");
        }
    }
}
