//! Checks whether the controller has the permissions that it needs in a seed.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use serde::Serialize;

/// Number of concurrent access reviews.
const AT_ONCE: usize = 10;

/// API group, resource with subresource, and verbs. All of them apply to every namespace.
const NEEDED: &[(&str, &str, &[&str])] = &[
    ("extensions.gardener.cloud", "workers", &["get", "list", "watch", "patch"]),
    ("extensions.gardener.cloud", "workers/status", &["patch"]),
    ("extensions.gardener.cloud", "clusters", &["get", "list", "watch"]),
    ("machine.sapcloud.io", "machineclasses", &["list", "watch", "create", "update", "delete"]),
    ("machine.sapcloud.io", "machinedeployments", &["list", "watch", "create", "patch", "delete"]),
    ("machine.sapcloud.io", "machinesets", &["list", "watch", "create", "delete"]),
    ("machine.sapcloud.io", "machines", &["list", "watch", "create", "patch"]),
    ("", "secrets", &["get", "list", "watch", "create", "update", "delete"]),
    ("", "pods", &["list", "delete"]),
    ("apps", "deployments", &["get"]),
    ("apps", "deployments/scale", &["patch"]),
    ("events.k8s.io", "events", &["create", "patch"]),
];

/// Number of checked permissions, and the missing ones.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Permissions {
    #[serde(rename = "asked")]
    pub(super) requested: usize,
    pub(super) missing: Vec<Permission>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Permission {
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) verb: &'static str,
}

/// Checks each permission for the client's user with an access review.
pub(super) async fn check(client: &Client) -> anyhow::Result<Permissions> {
    let needed: Vec<Permission> = NEEDED
        .iter()
        .flat_map(|&(group, resource, verbs)| verbs.iter().map(move |&verb| Permission { group, resource, verb }))
        .collect();
    let requested = needed.len();
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let queries = stream::iter(needed).map(async |permission| {
        let (resource, sub_resource) = permission.resource.split_once('/').unwrap_or((permission.resource, ""));
        let attributes = ResourceAttributes {
            group: Some(permission.group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: Some(sub_resource.to_owned()).filter(|sub_resource| !sub_resource.is_empty()),
            verb: Some(permission.verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let result = api.create(&PostParams::default(), &review).await?;
        let is_allowed = result.status.is_some_and(|status| status.allowed);
        anyhow::Ok((!is_allowed).then_some(permission))
    });
    let results: Vec<Option<Permission>> = queries.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut missing: Vec<Permission> = results.into_iter().flatten().collect();
    missing.sort();
    Ok(Permissions { requested, missing })
}
