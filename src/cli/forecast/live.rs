//! The Shoots of a garden and their profiles, read page by page: of each Shoot only its versions are kept.

use std::path::Path;

use super::garden_files::GardenFiles;
use crate::cluster::garden_cluster::{GardenCluster, GardenKind};
use crate::process::threads::block_on;

/// Reads all Shoots, or those of a namespace, with the profiles that they may name.
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
