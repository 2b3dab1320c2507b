//! The expirations of a profile's versions, for comparison with an older profile.

use std::collections::HashMap;

use jiff::Timestamp;

use wire::api::gardener::{KubernetesSettings, ProfileSpec, ProfileVersions};

use super::catalog::ListedVersion;

/// When each version of a profile expires or has expired, by image (`None` for Kubernetes) and version. Of duplicates,
/// the first one is used.
#[derive(Clone, Debug, Default)]
pub struct Expirations(HashMap<(Option<String>, String), Option<Timestamp>>);

impl Expirations {
    /// When a version expires or has expired. The name of the image is case-insensitive; `None` means Kubernetes.
    #[must_use]
    pub fn of(&self, image: Option<&str>, version: &str) -> Option<Timestamp> {
        self.0.get(&(image.map(str::to_lowercase), version.to_owned())).copied().flatten()
    }

    fn new<'a>(kubernetes: &'a KubernetesSettings, images: impl Iterator<Item = (&'a str, ListedVersion<'a>)>) -> Self {
        let kubernetes = kubernetes.versions.iter().map(|version| (None, ListedVersion::from(version)));
        let images = images.map(|(image, version)| (Some(image.to_lowercase()), version));
        let mut times = HashMap::new();
        for (image, version) in kubernetes.chain(images) {
            times.entry((image, version.text.to_owned())).or_insert_with(|| version.expires());
        }
        Self(times)
    }
}

impl From<&ProfileSpec> for Expirations {
    fn from(ProfileSpec { kubernetes, machine_images, .. }: &ProfileSpec) -> Self {
        let images = machine_images.iter();
        Self::new(kubernetes, images.flat_map(|image| image.versions.iter().map(|entry| (&*image.name, entry.into()))))
    }
}

impl From<&ProfileVersions> for Expirations {
    fn from(ProfileVersions { kubernetes, machine_images }: &ProfileVersions) -> Self {
        let images = machine_images.iter();
        Self::new(kubernetes, images.flat_map(|image| image.versions.iter().map(|entry| (&*image.name, entry.into()))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expirations_are_the_same_whether_all_of_a_profile_is_read_or_its_versions_alone() {
        let profile = json!({
            "kubernetes": {"versions": [{"version": "1.34.3", "expirationDate": "2026-04-01T00:00:00Z"}]},
            "machineImages": [{"name": "OS", "versions": [
                {"version": "1", "capabilityFlavors": [{"architecture": ["amd64"]}], "lifecycle": [
                    {"classification": "supported"}, {"classification": "expired", "startTime": "2026-05-01T00:00:00Z"}]},
                {"version": "1", "expirationDate": "2027-01-01T00:00:00Z"},
                {"version": "2"},
            ]}],
            "machineTypes": [{"name": "m"}],
        });
        let whole: ProfileSpec = serde_json::from_str(&profile.to_string()).unwrap();
        let versions: ProfileVersions = serde_json::from_str(&profile.to_string()).unwrap();
        let time = |text: &str| Some(text.parse().unwrap());
        for expirations in [Expirations::from(&whole), Expirations::from(&versions)] {
            assert_eq!(expirations.of(None, "1.34.3"), time("2026-04-01T00:00:00Z"));
            assert_eq!(expirations.of(Some("os"), "1"), time("2026-05-01T00:00:00Z"), "the first of that name");
            assert_eq!(expirations.of(Some("os"), "2"), None);
            assert_eq!(expirations.of(None, "1"), None);
        }
    }
}
