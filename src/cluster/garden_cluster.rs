//! The garden cluster, for commands that read what all seeds share.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

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

/// Group of the garden's objects.
const GROUP: &str = "core.gardener.cloud";
/// Objects of a page.
const PAGE: u32 = 500;

/// Whether a cluster is a garden: a seed does not serve the garden's objects.
///
/// # Errors
/// When the API server does not say what it serves.
pub(crate) async fn is_garden(client: &Client) -> anyhow::Result<bool> {
    let served = client.list_api_groups().await.context("what the API server serves can't be read")?;
    Ok(served.groups.iter().any(|group| group.name == GROUP))
}

/// Kinds of objects that commands read of a garden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GardenKind {
    /// What a cloud offers.
    CloudProfile,
    /// What a project adds to a CloudProfile.
    NamespacedCloudProfile,
    /// A cluster of a project.
    Shoot,
}

impl GardenKind {
    /// As it stands in objects.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CloudProfile => "CloudProfile",
            Self::NamespacedCloudProfile => "NamespacedCloudProfile",
            Self::Shoot => "Shoot",
        }
    }

    fn api(self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(GROUP, "v1beta1", self.name());
        let resource = ApiResource::from_gvk_with_plural(&kind, &format!("{}s", self.name().to_lowercase()));
        match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        }
    }

    /// The object of that name, if there is one.
    ///
    /// # Errors
    /// When the garden says no, or nothing.
    pub(crate) async fn get(
        self,
        client: &Client,
        namespace: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<Value>> {
        let kind = self.name();
        let found = self.api(client, namespace).get_opt(name).await;
        found.with_context(|| format!("{kind} {name:?} can't be read"))?.map(|object| self.document(object)).transpose()
    }

    /// Shows all objects, or those of a namespace, page by page.
    ///
    /// # Errors
    /// When the garden says no, or nothing.
    pub(crate) async fn list(
        self,
        client: &Client,
        namespace: Option<&str>,
        mut show: impl FnMut(Value),
    ) -> anyhow::Result<()> {
        let api = self.api(client, namespace);
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let listed = api.list(&page).await.with_context(|| format!("{}s can't be listed", self.name()))?;
            for object in listed.items {
                show(self.document(object)?);
            }
            let Some(next) = listed.metadata.continue_.filter(|next| !next.is_empty()) else { return Ok(()) };
            page = page.continue_token(&next);
        }
    }

    /// The items of a list need not say their kind.
    fn document(self, object: DynamicObject) -> anyhow::Result<Value> {
        let mut document = serde_json::to_value(object)?;
        document["apiVersion"] = format!("{GROUP}/v1beta1").into();
        document["kind"] = self.name().into();
        Ok(document)
    }
}
