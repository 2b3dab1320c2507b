//! The garden cluster, for commands that read what all seeds share.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use kube::Client;

use crate::cluster::seed::config;

/// Where the garden is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GardenCluster {
    /// Kubeconfig of the garden; without it `KUBECONFIG` or the default file is used.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl GardenCluster {
    /// Whether the command line names it.
    #[must_use]
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// A client for it.
    ///
    /// # Errors
    /// When there is no kubeconfig, or it can't be used.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let config = config(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        Client::try_from(config).context("no client for the garden")
    }
}
