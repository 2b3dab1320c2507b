//! Image versions in the provider config of an Azure CloudProfile.

use super::references::validate_references;
use crate::provider::azure::documents::{ImageReferences, ImageVersion};
use crate::provider::azure::image::{BASIC, NETWORKING, old_format_capabilities, reference};
use crate::provider::profile::{
    EntryFlavor, ListedReference, Repeated, VersionEntry, neither_format, validate_architecture,
};
use wire::api::gardener::Capabilities;
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{ARCHITECTURE, DEFAULT_ARCHITECTURE};

impl VersionEntry for ImageVersion {
    const REPEATED: Repeated = Repeated::All;

    fn version(&self) -> &str {
        &self.version
    }

    fn listed_capabilities(&self) -> impl ExactSizeIterator<Item = &Capabilities> {
        self.capability_flavors.iter().map(|flavor| &flavor.capabilities)
    }

    fn architectures(&self) -> Vec<&str> {
        vec![self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE)]
    }

    /// Azure images have the same reference in every region.
    fn flavors(&self, _region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        if !self.has_flavors() {
            let architecture = self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
            let capabilities = old_format_capabilities(architecture, self.accelerated_networking);
            return vec![EntryFlavor::old_format(capabilities, listed(self.references()))];
        }
        EntryFlavor::listed(
            self.capability_flavors.iter().map(|flavor| (&flavor.capabilities, listed(flavor.references()))),
        )
    }

    /// One flavor per architecture and networking, sorted, accelerated ones first. Unlike in [`VersionEntry::flavors`],
    /// accelerated flavors omit the networking capability, which allows every value.
    fn core_flavors(entries: &[&Self]) -> Vec<Capabilities> {
        let with_image = entries.iter().filter(|entry| entry.references().preferred().is_some());
        let mut combinations: Vec<(&str, bool)> = with_image
            .map(|entry| {
                let architecture = entry.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
                (architecture, entry.accelerated_networking != Some(true))
            })
            .collect();
        combinations.sort_unstable();
        combinations.dedup();
        let flavor = |(architecture, is_basic)| {
            let networking = if is_basic { Some((NETWORKING, [BASIC])) } else { None };
            Capabilities::from_iter([(ARCHITECTURE, [architecture])].into_iter().chain(networking))
        };
        combinations.into_iter().map(flavor).collect()
    }

    fn old_format_members(&self) -> Vec<&'static str> {
        let members = [
            ("image", self.references().preferred().is_some()),
            ("architecture", self.architecture.is_some()),
            ("acceleratedNetworking", self.accelerated_networking.is_some()),
        ];
        members.into_iter().filter_map(|(member, is_set)| is_set.then_some(member)).collect()
    }

    fn validate_old_format(&self, image: &str, has_choice: bool, path: FieldPath<'_>, errors: &mut FieldErrors) {
        if has_choice && self.references().preferred().is_none() {
            errors.required(path.child("image"), neither_format(image, &self.version));
            return;
        }
        validate_references(self.references(), path, errors);
        if let Some(architecture) = &self.architecture {
            validate_architecture(architecture, path, errors);
        }
    }

    fn validate_flavor(&self, index: usize, _image: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
        if let Some(flavor) = self.capability_flavors.get(index) {
            validate_references(flavor.references(), path, errors);
        }
    }
}

fn listed(references: ImageReferences<'_>) -> Vec<ListedReference<'_>> {
    reference(references).into_iter().collect()
}
