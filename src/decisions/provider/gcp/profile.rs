//! The provider config of GCP CloudProfiles.

use super::Gcp;
use super::documents::{API_VERSION, CloudProfileConfig, ImageVersion};
use crate::provider::profile::{
    ConfigType, EntryFlavor, ListedIn, ListedReference, ProfileFormat, Repeated, SameVersion, VersionEntry,
    name_architectures, neither_format, validate_architecture,
};
use wire::api::gardener::Capabilities;
use wire::api::gotext::field::{FieldErrors, FieldPath};
use wire::capabilities::{DEFAULT_ARCHITECTURE, only_architecture};

impl ProfileFormat for Gcp {
    fn provider_type(&self) -> &'static str {
        "gcp"
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::of::<CloudProfileConfig>(SameVersion::Added).completed_by(name_architectures)
    }
}

impl ListedIn for ImageVersion {
    const API_VERSION: &'static str = API_VERSION;
}

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

    fn flavors(&self, _region: Option<&str>) -> Vec<EntryFlavor<'_>> {
        if !self.has_flavors() {
            if self.image.is_empty() {
                return Vec::new();
            }
            let architecture = self.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE);
            return vec![EntryFlavor::old_format(only_architecture(architecture), reference(&self.image))];
        }
        EntryFlavor::listed(
            self.capability_flavors.iter().map(|flavor| (&flavor.capabilities, reference(&flavor.image))),
        )
    }

    fn old_format_members(&self) -> Vec<&'static str> {
        let members = [("image", !self.image.is_empty()), ("architecture", self.architecture.is_some())];
        members.into_iter().filter_map(|(member, is_set)| is_set.then_some(member)).collect()
    }

    fn validate_old_format(&self, image: &str, has_choice: bool, path: FieldPath<'_>, errors: &mut FieldErrors) {
        if self.image.is_empty() {
            let detail = if has_choice { neither_format(image, &self.version) } else { no_image(image, &self.version) };
            errors.required(path.child("image"), detail);
        }
        if let Some(architecture) = &self.architecture {
            validate_architecture(architecture, path, errors);
        }
    }

    fn validate_flavor(&self, index: usize, image: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
        if self.capability_flavors.get(index).is_some_and(|flavor| flavor.image.is_empty()) {
            errors.required(path.child("image"), no_image(image, &self.version));
        }
    }
}

fn reference(image: &str) -> Vec<ListedReference<'_>> {
    if image.is_empty() { vec![] } else { vec![ListedReference { region: None, member: "image", value: image }] }
}

fn no_image(image: &str, version: &str) -> String {
    format!("must provide the path of the image for machine image {image}@{version}")
}
