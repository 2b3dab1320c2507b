//! The answers of AWS to the questions behind the choice of an image.

use crate::api::gardener::{Capabilities, MachineImage, MachineType, WorkerPool};
use crate::provider::PoolProblem;
use crate::provider::aws::AwsWorker;
use crate::provider::aws::documents::{StatusImage, WorkerStatus};
use crate::provider::aws::image::{ImageSource, candidates, machine_side};
use crate::provider::explanation::ImageName;
use crate::provider::image::{of_image, position_of_kept};
use crate::provider::image_explanation::{ChosenFrom, FoundImage, ImageChoice, KnownImage};
use crate::provider::profile::ProfileConfig;

impl ImageChoice for AwsWorker<'_> {
    fn chosen_from(&self) -> ChosenFrom<'_> {
        let config = self.config.as_deref().map(|config| config as &dyn ProfileConfig);
        ChosenFrom { context: &self.context, config, definitions: &self.definitions }
    }

    fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities {
        self.capabilities_of(machine_type, pool)
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
        let known = of_image(kept_images(&self.status), image).map(|kept| KnownImage {
            reference: image_name(&kept.ami),
            capabilities: machine_side(kept, self.old_format),
        });
        known.collect()
    }

    fn found(&self, pool: &WorkerPool, machine: &Capabilities) -> Result<FoundImage, PoolProblem> {
        let selected = self.select_image(pool, machine)?;
        let kept = match &selected.source {
            ImageSource::CloudProfile(_) => None,
            ImageSource::ProviderStatus(found) => position_of_kept(kept_images(&self.status), found),
        };
        Ok(FoundImage { reference: image_name(selected.ami), kept })
    }
}

fn kept_images(status: &Option<WorkerStatus>) -> &[StatusImage] {
    status.as_ref().map(|status| &*status.machine_images).unwrap_or_default()
}

fn image_name(ami: &str) -> Option<ImageName> {
    ImageName::of("ami", ami)
}
