//! I/O: the garden cluster, which is asked only when a moved shoot's machines are not in its Worker.

use std::path::PathBuf;
use std::time::Duration;

use kube::api::{GetParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Resource};

use crate::api::gardener::ShootState;
use crate::cluster::client_config::completed;
use crate::process::failure_reason::reason;

/// How the garden is reached. A client is made anew for each question: they are rare, and gardenlet rotates what the
/// kubeconfig holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garden {
    /// A kubeconfig of the garden; absent where the extension has no access to it.
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Why the state of a shoot can't be had from the garden.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GardenError {
    /// The extension was given no access.
    #[error("cannot fetch machine state from ShootState because garden client is missing (see --garden-kubeconfig)")]
    NoAccess,
    /// The kubeconfig can't be used.
    #[error("kubeconfig {path} of the garden can't be used: {source}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// No client can be made of it.
    #[error("no client for the garden: {}", reason(.0))]
    Client(kube::Error),
    /// The garden said no, or nothing.
    #[error("failed reading ShootState \"{namespace}/{name}\" from garden: {}", reason(source))]
    Api {
        /// The project's namespace.
        namespace: String,
        /// The shoot.
        name: String,
        /// Why.
        source: kube::Error,
    },
    /// The garden's answer is no ShootState.
    #[error("ShootState \"{namespace}/{name}\" can't be decoded at line {line} column {column}")]
    Decode {
        /// The project's namespace.
        namespace: String,
        /// The shoot.
        name: String,
        /// Line from one. The decoder's text could hold secrets of the shoot, so only the place is told.
        line: usize,
        /// Column from one.
        column: usize,
    },
}

impl Garden {
    /// The state that is kept of a shoot.
    ///
    /// # Errors
    /// When there is no access, or no such state, or it can't be read.
    pub(crate) async fn shoot_state(&self, namespace: &str, name: &str) -> Result<ShootState, GardenError> {
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
        // A garden that does not answer must not hold a Worker for longer than that.
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = Some(Duration::from_secs(30));
        Client::try_from(config).map_err(GardenError::Client)
    }
}
