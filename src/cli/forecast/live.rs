//! The Shoots of a garden and their profiles, read page by page: of each Shoot only its versions are kept.

use std::path::Path;

use anyhow::Context;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};

use super::garden_files::GardenFiles;
use crate::cluster::garden_cluster::GardenCluster;
use crate::process::threads::block_on;

/// Objects of a page.
const PAGE: u32 = 500;

/// Reads all Shoots, or those of a namespace, with the profiles that they may name.
pub(super) fn read(garden: &GardenCluster, namespace: Option<&str>) -> anyhow::Result<GardenFiles> {
    block_on(async {
        let (client, mut found) = (garden.client().await?, GardenFiles::default());
        for (kind, plural, namespace) in [
            ("CloudProfile", "cloudprofiles", None),
            ("NamespacedCloudProfile", "namespacedcloudprofiles", namespace),
            ("Shoot", "shoots", namespace),
        ] {
            let resource = GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", kind);
            let resource = ApiResource::from_gvk_with_plural(&resource, plural);
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            let mut page = ListParams::default().limit(PAGE);
            loop {
                let listed = api.list(&page).await.with_context(|| format!("{kind}s can't be listed"))?;
                for object in listed.items {
                    let mut object = serde_json::to_value(object)?;
                    // The items of a list need not say their kind.
                    object["kind"] = kind.into();
                    found.add(Path::new("garden"), &object);
                }
                let Some(next) = listed.metadata.continue_.filter(|next| !next.is_empty()) else { break };
                page = page.continue_token(&next);
            }
        }
        Ok(found)
    })
}
