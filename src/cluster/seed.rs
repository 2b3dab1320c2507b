//! The seed cluster, for every command that talks to one.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::cluster::client_config::completed;
use crate::cluster::config_files::ConfigFiles;

/// Where the seed is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Seed {
    /// Kubeconfig of the seed; without it `KUBECONFIG`, the default file or the service account of the pod is used.
    // Not read from the environment by clap: `KUBECONFIG` may name several files, which kube merges.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Seed {
    /// Whether the command line names it.
    #[must_use]
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// The files that say how to reach it.
    #[must_use]
    pub(crate) fn files(&self) -> ConfigFiles {
        ConfigFiles::of(self.kubeconfig.as_deref())
    }

    /// How to reach it.
    ///
    /// # Errors
    /// When there is no kubeconfig and no service account, or it can't be used.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        config(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }

    /// A client for it.
    ///
    /// # Errors
    /// When there is no kubeconfig and no service account, or it can't be used.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        self.client_as(None).await
    }

    /// A client for it that acts as another user, if one is named.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub(crate) async fn client_as(&self, user: Option<&str>) -> anyhow::Result<Client> {
        let mut config = self.config().await?;
        if let Some(user) = user {
            config.auth_info.impersonate = Some(user.to_owned());
        }
        Client::try_from(config).context("no client for the seed")
    }
}

/// Why a kubeconfig is no use, once: the error names its causes itself. Only the first line, because the others show the
/// content of the file.
fn reason(error: &KubeconfigError) -> String {
    let innermost = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source()).last();
    let text = innermost.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// How to reach the cluster of a kubeconfig, in one of its contexts.
pub(crate) async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Config> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = match kubeconfig {
        Some(path) => {
            let failed =
                |what: &str, error| anyhow!("kubeconfig {} can't be {what}: {}", path.display(), reason(&error));
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| failed("read", error))?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| failed("used", error))?
        }
        None if context.is_some() => Config::from_kubeconfig(&options).await.context("the kubeconfig can't be used")?,
        // The error names its causes itself; as a chain they would be told three times.
        None => Config::infer().await.map_err(|error| anyhow!("no kubeconfig and no service account: {error}"))?,
    };
    Ok(completed(config))
}
