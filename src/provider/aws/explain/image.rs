//! The answers of AWS to the questions behind the choice of an image.

use crate::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, MachineType, WorkerPool};
use crate::provider::aws::AwsWorker;
use crate::provider::aws::documents::StatusImage;
use crate::provider::aws::image::{ImageSource, candidates, image_in_profile, machine_side};
use crate::provider::explanation::ImageName;
use crate::provider::image::of_image;
use crate::provider::image_explanation::{FoundImage, ImageChoice, KnownImage};
use crate::provider::profile::{ListedVersion, ProfileConfig as _};
use crate::provider::{PoolProblem, WorkerContext};

impl ImageChoice for AwsWorker<'_> {
    fn context(&self) -> &WorkerContext<'_> {
        &self.context
    }

    fn definitions(&self) -> &[CapabilityDefinition] {
        &self.definitions
    }

    fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities {
        self.capabilities_of(machine_type, pool)
    }

    fn images(&self) -> Vec<ListedVersion<'_>> {
        self.config.iter().flat_map(|config| config.images()).collect()
    }

    fn listed(&self, image: &MachineImage) -> Vec<KnownImage<'_>> {
        let candidates =
            self.config.as_ref().map(|config| candidates(config, image, self.region())).unwrap_or_default();
        let known = candidates
            .into_iter()
            .map(|candidate| KnownImage { reference: image_name(candidate.ami), capabilities: candidate.capabilities });
        known.collect()
    }

    fn kept(&self, image: &MachineImage) -> Vec<KnownImage<'_>> {
        let known = self.status_images(image).map(|kept| KnownImage {
            reference: image_name(&kept.ami),
            capabilities: machine_side(kept, self.old_format),
        });
        known.collect()
    }

    fn is_in_profile(&self, image: &MachineImage, machine: &Capabilities) -> bool {
        image_in_profile(self.config.as_deref(), image, self.region(), machine, &self.definitions).is_ok()
    }

    fn found(&self, pool: &WorkerPool, machine: &Capabilities) -> Result<FoundImage, PoolProblem> {
        let selected = self.select_image(pool, machine)?;
        let kept = match &selected.source {
            ImageSource::CloudProfile(_) => None,
            ImageSource::ProviderStatus(found) => {
                self.status_images(&pool.machine_image).position(|kept| std::ptr::eq(kept, *found))
            }
        };
        Ok(FoundImage { reference: image_name(selected.ami), kept })
    }
}

impl AwsWorker<'_> {
    fn status_images(&self, image: &MachineImage) -> impl Iterator<Item = &StatusImage> {
        of_image(self.status.iter().flat_map(|status| &status.machine_images), image)
    }
}

fn image_name(ami: &str) -> Option<ImageName> {
    ImageName::of("ami", ami)
}
