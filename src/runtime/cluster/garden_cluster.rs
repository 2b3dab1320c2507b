//! The garden cluster, for commands that read objects shared by all seeds.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use crate::cluster::client::client;
use crate::cluster::seed::config;

/// Arguments that select the garden.
#[derive(Clone, Debug, Default, Args)]
pub struct GardenCluster {
    /// Kubeconfig of the garden. By default, `KUBECONFIG` or the default file.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig. By default, the current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl GardenCluster {
    /// Whether the command line selects a cluster.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Creates a client.
    ///
    /// # Errors
    /// If there is no kubeconfig, or it is invalid.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let config = config(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        let client = client(config).await.context("no client for the garden")?;
        // Ignore a failure: the next request fails with the reason.
        if is_garden(&client).await.is_ok_and(|is_garden| !is_garden) {
            bail!(
                "this cluster is not a garden: it does not serve {GROUP}; if it is a seed, name the kubeconfig of its garden with --kubeconfig"
            );
        }
        Ok(client)
    }
}

/// API group of the garden's objects.
const GROUP: &str = "core.gardener.cloud";
/// Number of objects per page.
const PAGE_SIZE: u32 = 500;

/// Whether a cluster is a garden. A seed does not serve the garden's API group.
///
/// # Errors
/// If the API server does not list its API groups.
pub async fn is_garden(client: &Client) -> anyhow::Result<bool> {
    let served = client.list_api_groups().await.context("what the API server serves can't be read")?;
    Ok(served.groups.iter().any(|group| group.name == GROUP))
}

/// Kinds of garden objects that commands read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GardenKind {
    /// The offering of a cloud.
    CloudProfile,
    /// A project's additions to a CloudProfile.
    NamespacedCloudProfile,
    /// A cluster of a project.
    Shoot,
}

impl GardenKind {
    /// The kind as written in objects.
    #[must_use]
    pub fn name(self) -> &'static str {
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

    /// Gets an object by name, if it exists.
    ///
    /// # Errors
    /// If the garden rejects the request or does not respond.
    pub async fn get(self, client: &Client, namespace: Option<&str>, name: &str) -> anyhow::Result<Option<Value>> {
        let kind = self.name();
        let found = self.api(client, namespace).get_opt(name).await;
        found.with_context(|| format!("{kind} {name:?} can't be read"))?.map(|object| self.document(object)).transpose()
    }

    /// Lists all objects, or those of a namespace, page by page.
    ///
    /// # Errors
    /// If the garden rejects the request or does not respond.
    pub async fn list(
        self,
        client: &Client,
        namespace: Option<&str>,
        mut show: impl FnMut(Value),
    ) -> anyhow::Result<()> {
        let api = self.api(client, namespace);
        let mut page = ListParams::default().limit(PAGE_SIZE);
        loop {
            let listed = api.list(&page).await.with_context(|| format!("{}s can't be listed", self.name()))?;
            for object in listed.items {
                show(self.document(object)?);
            }
            let Some(next) = listed.metadata.continue_.filter(|next| !next.is_empty()) else { return Ok(()) };
            page = page.continue_token(&next);
        }
    }

    /// Lists the objects with this name in all namespaces.
    ///
    /// # Errors
    /// If the garden rejects the request or does not respond.
    pub async fn list_named(self, client: &Client, name: &str) -> anyhow::Result<Vec<Value>> {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let listed = self.api(client, None).list(&named).await;
        let listed = listed.with_context(|| format!("{}s can't be listed", self.name()))?;
        listed.items.into_iter().map(|object| self.document(object)).collect()
    }

    /// Adds the kind, which items of a list may omit.
    fn document(self, object: DynamicObject) -> anyhow::Result<Value> {
        let mut document = serde_json::to_value(object)?;
        document["apiVersion"] = format!("{GROUP}/v1beta1").into();
        document["kind"] = self.name().into();
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::test_support::{ApiServer, document, list, refusal};

    #[test]
    fn kubeconfig_or_context_selects_garden() {
        let is_named = |kubeconfig: Option<&str>, context: Option<&str>| {
            GardenCluster { kubeconfig: kubeconfig.map(PathBuf::from), context: context.map(str::to_owned) }.is_named()
        };
        assert!(is_named(Some("a"), None) && is_named(None, Some("a")) && is_named(Some("a"), Some("a")));
        assert!(!is_named(None, None));
    }

    #[tokio::test]
    async fn detects_garden_by_served_kinds() {
        let garden = async |groups: &'static [&'static str]| {
            let groups: Vec<Value> = groups.iter().map(|name| json!({"name": name, "versions": []})).collect();
            let server = ApiServer::new(move |_| document(&json!({"kind": "APIGroupList", "groups": groups})));
            is_garden(&server.client).await.unwrap()
        };
        assert!(garden(&["apps", "core.gardener.cloud", "settings.gardener.cloud"]).await);
        assert!(!garden(&["apps", "extensions.gardener.cloud"]).await);
        assert!(!garden(&[]).await);
        let refused = is_garden(&ApiServer::new(|_| refusal(403, "Forbidden")).client).await.unwrap_err();
        assert_eq!(refused.to_string(), "what the API server serves can't be read");
    }

    #[tokio::test]
    async fn sets_kind_of_listed_objects() {
        let server = ApiServer::new(|requested| match requested.last() {
            "gone" => refusal(404, "NotFound"),
            "secret" => refusal(403, "Forbidden"),
            name => document(&json!({"metadata": {"name": name}, "spec": {"a": 1}})),
        });
        let get = async |kind: GardenKind, namespace: Option<&str>, name: &str| {
            kind.get(&server.client, namespace, name).await
        };
        for (kind, namespace, path, name) in [
            (GardenKind::CloudProfile, None, "cloudprofiles", "CloudProfile"),
            (
                GardenKind::NamespacedCloudProfile,
                Some("p"),
                "namespaces/p/namespacedcloudprofiles",
                "NamespacedCloudProfile",
            ),
            (GardenKind::Shoot, Some("p"), "namespaces/p/shoots", "Shoot"),
        ] {
            let found = get(kind, namespace, "a").await.unwrap();
            let expected = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": name, "metadata": {"name": "a"},
                "spec": {"a": 1}});
            assert_eq!(found, Some(expected));
            assert_eq!(server.lines(), [format!("GET /apis/core.gardener.cloud/v1beta1/{path}/a")]);
            assert_eq!(get(kind, namespace, "gone").await.unwrap(), None);
            let refused = get(kind, namespace, "secret").await.unwrap_err().to_string();
            assert_eq!(refused, format!("{name} \"secret\" can't be read"));
            server.requested();
        }
    }

    #[tokio::test]
    async fn reads_all_pages() {
        let server = ApiServer::new(|requested| {
            let (name, next) = if requested.query.contains("continue=more") { ("b", "") } else { ("a", "more") };
            let items = json!([{"metadata": {"name": name}}]);
            document(&json!({"metadata": {"resourceVersion": "7", "continue": next}, "items": items}))
        });
        let mut observed = Vec::new();
        let show = |object: Value| observed.push(format!("{} {}", object["kind"], object["metadata"]["name"]));
        GardenKind::Shoot.list(&server.client, None, show).await.unwrap();
        assert_eq!(observed, [r#""Shoot" "a""#, r#""Shoot" "b""#]);
        let requested = server.requested();
        assert_eq!(requested.len(), 2);
        let path = "GET /apis/core.gardener.cloud/v1beta1/shoots";
        assert!(
            requested.iter().all(|requested| requested.line == path && requested.query.contains("limit=500")),
            "{requested:?}"
        );

        let none = ApiServer::new(|_| list(&[]));
        GardenKind::Shoot.list(&none.client, Some("p"), |object| panic!("{object}")).await.unwrap();
        assert_eq!(none.lines(), ["GET /apis/core.gardener.cloud/v1beta1/namespaces/p/shoots"]);
        let server = ApiServer::new(|_| refusal(403, "Forbidden"));
        let refused = GardenKind::CloudProfile.list(&server.client, None, |_| {}).await.unwrap_err();
        assert_eq!(refused.to_string(), "CloudProfiles can't be listed");
    }
}
