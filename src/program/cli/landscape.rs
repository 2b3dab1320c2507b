//! All objects of a landscape that may use CloudProfile versions, for `cloudprofile versions` and `images unused`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::forecast::garden_files::{GardenFiles, ProfileKey};
use super::forecast::{YEAR, one};
use super::in_parallel::in_parallel;
use profiles::cloud_profile::change::{children, uses};
use profiles::images::version_users::PlannedVersion;
use profiles::versions::catalog::VersionCatalog;
use profiles::versions::garden::{Garden, Validation};
use runtime::cluster::garden_cluster::{GardenCluster, GardenKind};
use runtime::process::threads::block_on;
use runtime::reader::files::files;
use wire::api::gardener::ProfileSpec;

/// The objects of a landscape, raw and decoded.
pub(super) struct Landscape {
    pub(super) files: GardenFiles,
    /// Raw objects.
    pub(super) objects: Vec<Value>,
    /// Whether objects were read from a garden, which has no Workers.
    has_garden: bool,
}

impl Landscape {
    pub(super) fn empty() -> Self {
        Self { files: GardenFiles::none(), objects: Vec::new(), has_garden: false }
    }

    /// Adds the objects of files and folders. Records unreadable files in the evidence.
    pub(super) fn add_files(&mut self, paths: &[PathBuf]) {
        for file in self.files.evidence.note_skipped(files(paths)) {
            match file.objects() {
                Ok(objects) => objects.into_iter().for_each(|object| self.add(&file.path, object)),
                Err(error) => self.files.evidence.unread(&error),
            }
        }
    }

    /// Adds the objects of a garden, page by page.
    pub(super) fn add_garden(&mut self, garden: &GardenCluster) -> anyhow::Result<()> {
        self.has_garden = true;
        block_on(async {
            let client = garden.client().await?;
            for kind in [GardenKind::CloudProfile, GardenKind::NamespacedCloudProfile, GardenKind::Shoot] {
                kind.list(&client, None, |object| self.add(Path::new("garden"), object)).await?;
            }
            Ok(())
        })
    }

    fn add(&mut self, path: &Path, object: Value) {
        self.files.add(path, &object);
        self.objects.push(object);
    }

    /// Whether it contains objects that use versions.
    pub(super) fn has_users(&self) -> bool {
        let kinds = ["Shoot", "Worker", "Cluster"];
        self.objects.iter().any(|object| kinds.iter().any(|kind| object["kind"] == **kind))
    }

    /// Whether Workers are missing: a garden was read, and Workers are in its seeds. Workers keep the images of machines
    /// that have not rolled yet.
    pub(super) fn lacks_workers(&self) -> bool {
        self.has_garden && !self.objects.iter().any(|object| object["kind"] == "Worker")
    }

    /// All profiles, with NamespacedCloudProfiles merged into their parents.
    pub(super) fn profiles(&self) -> BTreeMap<ProfileKey, ProfileSpec> {
        self.files.replaced_by(&GardenFiles::none())
    }

    /// The versions that maintenance will update Shoots to within a year. Shoots that cannot be evaluated are recorded
    /// in the evidence.
    pub(super) fn planned_versions(
        &mut self,
        profiles: &BTreeMap<ProfileKey, ProfileSpec>,
        profile: &str,
        now: Timestamp,
    ) -> Vec<PlannedVersion> {
        let children = children(profile, self.files.namespaced());
        let catalogs: BTreeMap<ProfileKey, VersionCatalog<'_>> =
            profiles.iter().map(|(key, spec)| (key.clone(), VersionCatalog::new(&key.reference, spec))).collect();
        let garden = Garden {
            bindings: self.files.bindings(),
            is_nginx_ingress_disabled: false,
            validation: Validation::WithProfile,
        };
        let shoots = self.files.shoots();
        let of_profile: Vec<_> =
            shoots.into_iter().filter(|given| uses(&given.state.shoot, profile, &children)).collect();
        let forecasts = in_parallel(&of_profile, |given| {
            let title = given.state.shoot.title();
            let Some((_, catalog)) = given.profile(&catalogs) else {
                return Err(format!("Shoot {title}: its CloudProfile is not given"));
            };
            let forecast = one(&given.state, catalog, &garden, [now, now + YEAR])
                .map_err(|error| format!("{}: Shoot {title}: {error}", given.source))?;
            let mut planned = Vec::new();
            for step in &forecast.steps {
                let day = step.time.to_zoned(TimeZone::UTC).date();
                planned.extend(step.moves.iter().map(|moved| PlannedVersion {
                    image: moved.image.clone(),
                    version: moved.to.clone(),
                    user: format!("Shoot {title}, which maintenance moves to it on {day}"),
                }));
            }
            Ok(planned)
        });
        let mut planned = Vec::new();
        for forecast in forecasts {
            match forecast {
                Ok(moves) => planned.extend(moves),
                Err(error) => self.files.evidence.unevaluated(error),
            }
        }
        planned.sort();
        planned.dedup();
        planned
    }
}
