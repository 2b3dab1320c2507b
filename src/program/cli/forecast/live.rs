//! Reads the Shoots of a garden and their profiles page by page, keeping only the versions of each Shoot.

use std::path::Path;

use super::garden_files::GardenFiles;
use runtime::cluster::garden_cluster::{GardenCluster, GardenKind};
use runtime::process::threads::block_on;

/// Reads all Shoots, or those in a namespace, with the profiles that they can reference.
pub(super) fn read(garden: &GardenCluster, namespace: Option<&str>) -> anyhow::Result<GardenFiles> {
    block_on(async {
        let client = garden.client().await?;
        let mut found = GardenFiles::none();
        for (kind, namespace) in [
            (GardenKind::CloudProfile, None),
            (GardenKind::NamespacedCloudProfile, namespace),
            (GardenKind::Shoot, namespace),
        ] {
            kind.list(&client, namespace, |object| found.add(Path::new("garden"), &object)).await?;
        }
        Ok(found)
    })
}
