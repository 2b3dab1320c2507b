//! I/O: the garden cluster, used only if a moved shoot's machine state is not in its Worker.

use std::path::PathBuf;
use std::time::Duration;

use kube::api::{GetParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Resource};

use crate::cluster::client::client;
use crate::cluster::client_config::completed;
use crate::process::failure_reason::reason;
use wire::api::gardener::ShootState;

/// Access to the garden. Each request uses a new client, because requests are rare and gardenlet rotates the
/// kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Garden {
    /// Kubeconfig of the garden; `None` without access.
    pub kubeconfig: Option<PathBuf>,
}

/// Why the state of a shoot is not available from the garden.
#[derive(Debug, thiserror::Error)]
pub enum GardenError {
    /// The extension has no access to the garden.
    #[error("cannot fetch machine state from ShootState because garden client is missing (see --garden-kubeconfig)")]
    NoAccess,
    /// The kubeconfig is invalid.
    #[error("kubeconfig {path} of the garden can't be used: {source}")]
    Kubeconfig {
        /// Path of the file.
        path: String,
        source: kube::config::KubeconfigError,
    },
    /// The client can't be created.
    #[error("no client for the garden: {}", reason(.0.as_ref()))]
    Client(anyhow::Error),
    /// The request failed or was rejected.
    #[error("failed reading ShootState \"{namespace}/{name}\" from garden: {}", reason(source))]
    Api {
        /// Namespace of the project.
        namespace: String,
        /// Name of the shoot.
        name: String,
        source: kube::Error,
    },
    /// The response is not a valid ShootState.
    #[error("ShootState \"{namespace}/{name}\" can't be decoded at line {line} column {column}")]
    Decode {
        /// Namespace of the project.
        namespace: String,
        /// Name of the shoot.
        name: String,
        /// Line, starting at 1. The decoder's message could contain secrets of the shoot, so only the position is
        /// reported.
        line: usize,
        /// Column, starting at 1.
        column: usize,
    },
}

impl Garden {
    /// Reads the ShootState of a shoot.
    ///
    /// # Errors
    /// When access or the ShootState is missing, or the read fails.
    pub async fn shoot_state(&self, namespace: &str, name: &str) -> Result<ShootState, GardenError> {
        let client = self.client().await?;
        let failed = |source| GardenError::Api { namespace: namespace.to_owned(), name: name.to_owned(), source };
        let request = Request::new(ShootState::url_path(&(), Some(namespace)))
            .get(name, &GetParams::default())
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        let text = client.request_text(request).await.map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| GardenError::Decode {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            line: error.line(),
            column: error.column(),
        })
    }

    async fn client(&self) -> Result<Client, GardenError> {
        let path = self.kubeconfig.as_ref().ok_or(GardenError::NoAccess)?;
        let unusable = |source| GardenError::Kubeconfig { path: path.display().to_string(), source };
        let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(unusable)?;
        let mut config = completed(config);
        // Bounds how long a garden that does not respond can delay a Worker.
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = Some(Duration::from_secs(30));
        client(config).await.map_err(GardenError::Client)
    }
}
