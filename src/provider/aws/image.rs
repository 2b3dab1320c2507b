//! Which image a pool's machines start from (spec/aws-worker.md section 3).

use std::borrow::Cow;

use super::documents::{CloudProfileConfig, StatusImage, WorkerStatus};
use crate::api::gardener::{Capabilities, CapabilityDefinition, MachineImage};
use crate::capabilities::{architecture_definition, are_compatible, only_architecture};
pub use crate::provider::image::{ARCHITECTURE, DEFAULT_ARCHITECTURE, NotInProfile, NotInStatus};
use crate::provider::image::{best_candidate, definitions_or, kept_of_image};
use crate::provider::profile::{ListedFlavor, listed_flavors};

/// The capabilities that a CloudProfile declares, or those that one in the old format stands for.
#[must_use]
pub fn profile_definitions(declared: &[CapabilityDefinition]) -> Cow<'_, [CapabilityDefinition]> {
    definitions_or(declared, || vec![architecture_definition()])
}

/// An image that a machine in the region could start from.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// What machines must be able to do.
    pub capabilities: Cow<'a, Capabilities>,
    /// The image.
    pub ami: &'a str,
}

/// The image of a pool.
#[derive(Clone, Debug)]
pub struct SelectedImage<'a> {
    /// Where it was found.
    pub source: ImageSource<'a>,
    /// The image.
    pub ami: &'a str,
}

/// Where an image was found.
#[derive(Clone, Debug)]
pub enum ImageSource<'a> {
    /// In the CloudProfile, with these capabilities.
    CloudProfile(Cow<'a, Capabilities>),
    /// In the provider status of the Worker, after the CloudProfile gave none.
    ProviderStatus(&'a StatusImage),
}

impl ImageSource<'_> {
    /// The document, for messages.
    #[must_use]
    pub fn place(&self) -> &'static str {
        match self {
            Self::CloudProfile(_) => "the CloudProfile",
            Self::ProviderStatus(_) => "status.providerStatus",
        }
    }
}

/// The candidates of the first entry for the image that has any for version and region, in the order of the profile.
#[must_use]
pub fn candidates<'a>(config: &'a CloudProfileConfig, image: &MachineImage, region: &str) -> Vec<Candidate<'a>> {
    let flavors = listed_flavors(&config.machine_images, &image.name, &image.version, Some(region));
    let candidate = |flavor: ListedFlavor<'a>| {
        let ami = flavor.references.first()?.value;
        Some(Candidate { capabilities: flavor.capabilities, ami })
    };
    flavors.into_iter().filter_map(candidate).collect()
}

/// The best image of the CloudProfile for a machine.
///
/// # Errors
/// When the profile lists no such version for the region, no flavor fits the machine, or several fit equally well.
pub fn image_in_profile<'a>(
    config: Option<&'a CloudProfileConfig>,
    image: &MachineImage,
    region: &str,
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
) -> Result<SelectedImage<'a>, NotInProfile> {
    let config = config.ok_or(NotInProfile::NoConfig)?;
    let candidates = candidates(config, image, region);
    if candidates.is_empty() && is_listed(config, image) {
        return Err(NotInProfile::NotInRegion { region: region.to_owned() });
    }
    let best = best_candidate(candidates, machine, definitions, |candidate| &*candidate.capabilities)?;
    Ok(SelectedImage { source: ImageSource::CloudProfile(best.capabilities), ami: best.ami })
}

fn is_listed(config: &CloudProfileConfig, image: &MachineImage) -> bool {
    let mut entries = config.machine_images.iter().filter(|entry| entry.name == image.name);
    entries.any(|entry| entry.versions.iter().any(|version| version.version == image.version))
}

/// What a kept image fits: its architecture where the CloudProfile declares no capabilities; else its capabilities, or
/// everything when it has none.
#[must_use]
pub fn machine_side(kept: &StatusImage, old_format: bool) -> Cow<'_, Capabilities> {
    match &kept.capabilities {
        _ if old_format => Cow::Owned(only_architecture(kept.architecture.as_deref().unwrap_or(DEFAULT_ARCHITECTURE))),
        Some(capabilities) => Cow::Borrowed(capabilities),
        None => Cow::Owned(Capabilities::default()),
    }
}

/// The first image of the provider status that fits a machine.
///
/// An image that is kept without capabilities fits every machine; but one that is kept with the right architecture goes
/// before it, so that pools of two architectures keep their own images when a CloudProfile starts to declare capabilities.
///
/// # Errors
/// When there is none.
pub fn image_in_status<'a>(
    status: Option<&'a WorkerStatus>,
    image: &MachineImage,
    machine: &Capabilities,
    definitions: &[CapabilityDefinition],
    old_format: bool,
) -> Result<SelectedImage<'a>, NotInStatus> {
    let kept = kept_of_image(status.map(|status| &*status.machine_images), image)?;
    let mut fitting =
        kept.filter(|kept| are_compatible(&machine_side(kept, old_format), machine, definitions)).peekable();
    let first = fitting.peek().copied();
    let says_so = |kept: &&StatusImage| {
        kept.capabilities.as_ref().is_some_and(|capabilities| !capabilities.is_empty())
            || kept
                .architecture
                .as_deref()
                .is_some_and(|architecture| are_compatible(&only_architecture(architecture), machine, definitions))
    };
    let found = fitting.find(says_so).or(first).ok_or(NotInStatus::Incompatible)?;
    Ok(SelectedImage { source: ImageSource::ProviderStatus(found), ami: &found.ami })
}

/// The image as it is kept in the provider status, with all that is known about it.
#[must_use]
pub fn status_image(image: &MachineImage, selected: &SelectedImage<'_>, machine_architecture: &str) -> StatusImage {
    let (capabilities, architecture) = match &selected.source {
        ImageSource::CloudProfile(capabilities) => {
            let architecture = capabilities.values(ARCHITECTURE).and_then(<[String]>::first);
            (Some(capabilities.clone().into_owned()), architecture)
        }
        ImageSource::ProviderStatus(kept) => {
            (kept.capabilities.clone().filter(|kept| !kept.is_empty()), kept.architecture.as_ref())
        }
    };
    StatusImage {
        name: image.name.clone(),
        version: image.version.clone(),
        ami: selected.ami.to_owned(),
        architecture: Some(architecture.map_or(machine_architecture, String::as_str).to_owned()),
        capabilities,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> MachineImage {
        MachineImage { name: "linux".to_owned(), version: "1.0.0".to_owned() }
    }

    fn kept(ami: &str, architecture: Option<&str>, capabilities: Option<Capabilities>) -> StatusImage {
        let MachineImage { name, version } = image();
        StatusImage { name, version, ami: ami.to_owned(), architecture: architecture.map(str::to_owned), capabilities }
    }

    fn ami_for(architecture: &str, images: &[StatusImage]) -> Result<String, NotInStatus> {
        let mut status = WorkerStatus::default();
        status.machine_images.extend_from_slice(images);
        let machine = only_architecture(architecture);
        image_in_status(Some(&status), &image(), &machine, &[architecture_definition()], false)
            .map(|selected| selected.ami.to_owned())
    }

    #[test]
    fn pools_of_two_architectures_keep_their_images_of_the_old_format() {
        let images = [kept("ami-arm", Some("arm64"), None), kept("ami-amd", Some("amd64"), None)];
        assert_eq!(ami_for("amd64", &images).as_deref(), Ok("ami-amd"));
        assert_eq!(ami_for("arm64", &images).as_deref(), Ok("ami-arm"));
        assert_eq!(ami_for("amd64", &images[..1]).as_deref(), Ok("ami-arm"), "as the Go extension");
    }

    #[test]
    fn kept_capabilities_decide() {
        let images = [kept("ami-arm", None, Some(only_architecture("arm64")))];
        assert_eq!(ami_for("amd64", &images), Err(NotInStatus::Incompatible));
        assert_eq!(ami_for("amd64", &[]), Err(NotInStatus::NotKept));
    }

    #[test]
    fn the_last_entry_of_a_region_counts() {
        let config: CloudProfileConfig = serde_json::from_str(
            r#"{"machineImages":[{"name":"linux","versions":[{"version":"1.0.0","regions":[
                {"name":"eu","ami":"a"},{"name":"us","ami":"b"},{"name":"eu","ami":"c"},
                {"name":"eu","ami":"d","architecture":"arm64"}]}]}]}"#,
        )
        .unwrap();
        let amis =
            |region| candidates(&config, &image(), region).iter().map(|candidate| candidate.ami).collect::<Vec<_>>();
        assert_eq!(amis("eu"), ["c", "d"]);
        assert_eq!(amis("us"), ["b"]);
        let machine = only_architecture("amd64");
        let elsewhere = image_in_profile(Some(&config), &image(), "ap", &machine, &[architecture_definition()]);
        assert_eq!(elsewhere.unwrap_err(), NotInProfile::NotInRegion { region: "ap".to_owned() });
    }
}
