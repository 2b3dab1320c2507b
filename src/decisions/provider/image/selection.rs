//! Selects the image of a pool and records the result for every candidate.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kept::{ComparedWith, FallbackImages, KeptImage, status_entry};
use super::status::status_images;
use super::{ImageProvider, NotInProfile, NotKept, architecture, machine_type};
use crate::provider::document::DocumentError;
use crate::provider::explanation::{ChosenImage, ImageCandidate, ImageExplanation, ImageName, Origin};
use crate::provider::profile::{ListedFlavor, Location, ProfileConfig};
use crate::provider::{PoolPlan, PoolProblem, WorkerContext, WorkerError};
use wire::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, MachineType, WorkerPool};
use wire::capabilities::{
    ARCHITECTURE, FlavorVerdict, Ranking, are_compatible, mismatches, only_architecture, rank_flavors, with_defaults,
};

/// The images of one Worker.
pub struct WorkerImages<'a> {
    pub(super) provider: &'a dyn ImageProvider,
    pub(super) context: WorkerContext<'a>,
    pub(super) config: Option<Arc<dyn ProfileConfig>>,
    pub(super) definitions: Cow<'a, [CapabilityDefinition]>,
    kept: FallbackImages,
}

/// The selected image of a pool, or the reason why none fits, with an explanation.
#[derive(Debug)]
pub struct ImageSelection<'a> {
    /// The image that machines start from.
    pub selected: Result<SelectedImage<'a>, PoolProblem>,
    /// Result for every candidate.
    pub explanation: ImageExplanation,
}

/// The image that the machines of a pool start from.
#[derive(Clone, Debug)]
pub struct SelectedImage<'a> {
    /// Place of the image.
    pub source: ImageSource,
    /// Reference to the image in the cloud.
    pub reference: ImageName,
    /// Capabilities that a machine must support; an absent capability allows every value.
    pub capabilities: Cow<'a, Capabilities>,
    /// Capabilities of the machine type that the image was selected for.
    pub machine: Capabilities,
}

/// The place where an image was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// In the provider config of the CloudProfile, at this place.
    CloudProfile(Location),
    /// Among the kept images, at this position, because the CloudProfile has no fitting image.
    Kept(usize),
}

/// A selected candidate, which may still lack required members.
struct Found<'a> {
    source: ImageSource,
    reference: Option<ImageName>,
    capabilities: Cow<'a, Capabilities>,
}

impl SelectedImage<'_> {
    /// The `WorkerStatus` entry of the image, with the capabilities of its flavor.
    #[must_use]
    pub fn to_status(&self, image: &MachineImage) -> Value {
        status_entry(image, Some(&self.reference), &self.capabilities)
    }
}

impl<'a> WorkerImages<'a> {
    /// Decodes the documents that all pools share.
    ///
    /// # Errors
    /// If a document can't be decoded.
    pub fn open(provider: &'a dyn ImageProvider, context: WorkerContext<'a>) -> Result<Self, WorkerError> {
        Self::open_with(provider, context, provider.kept_images(&context)?)
    }

    /// Decodes the provider config of the CloudProfile, with kept images that were already decoded.
    ///
    /// # Errors
    /// If it can't be decoded.
    pub fn open_with(
        provider: &'a dyn ImageProvider,
        context: WorkerContext<'a>,
        kept: FallbackImages,
    ) -> Result<Self, WorkerError> {
        let spec = &context.cloud_profile.spec;
        // This is the largest document and shared by many Workers, so the decoded form is cached in the profile.
        let decoded = spec.decoded_provider_config.get_or_decode(|| {
            let open = |raw| provider.open(Some(raw)).map(Arc::<dyn ProfileConfig>::from);
            spec.provider_config.as_deref().map(open).transpose()
        });
        let config: Result<_, DocumentError> = (*decoded).clone();
        let config = config.map_err(|source| WorkerError::Document { path: context.profile_config_path(), source })?;
        Ok(Self::new(provider, context, config, kept))
    }

    /// Uses documents that the provider has already decoded for other purposes.
    #[must_use]
    pub fn new(
        provider: &'a dyn ImageProvider,
        context: WorkerContext<'a>,
        config: Option<Arc<dyn ProfileConfig>>,
        kept: FallbackImages,
    ) -> Self {
        let definitions = provider.definitions(&context.cloud_profile.spec.machine_capabilities);
        Self { provider, context, config, definitions, kept }
    }

    /// The effective capabilities: those of the CloudProfile, or the implicit ones of the old format.
    #[must_use]
    pub fn definitions(&self) -> &[CapabilityDefinition] {
        &self.definitions
    }

    /// The images of the provider status after `planned`, as entries with capabilities. Images of pools that could not
    /// be planned stay unchanged.
    #[must_use]
    pub fn status_images(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Vec<Value> {
        let planned = planned.iter().map(|plan| plan.status_image.clone());
        status_images(planned, self.kept.images.iter().map(KeptImage::to_status), failed)
    }

    /// All inputs from the Worker that decide which image of a CloudProfile a pool gets, and which other settings of
    /// its machine type it gets.
    #[must_use]
    pub fn needs_profile(&self, pool: &WorkerPool) -> Value {
        let worker = self.context.worker;
        let deciding = self.provider.architecture_pool(worker, pool, &pool.machine_type);
        let MachineImage { name, version } = &pool.machine_image;
        json!({
            "region": worker.spec.region,
            "machineType": pool.machine_type,
            "architectures": [architecture(pool), architecture(deciding)],
            "image": [name, version],
            "kept": worker.status.provider_status,
        })
    }

    /// Selects the image of a pool.
    #[must_use]
    pub fn select(&self, pool: &WorkerPool) -> ImageSelection<'_> {
        match machine_type(&self.context, pool) {
            Ok(machine_type) => self.select_for(pool, self.capabilities_of(machine_type, pool)),
            // No capabilities are compared, so the machine type is not needed.
            Err(_) if self.definitions.is_empty() || self.bypasses_profile(pool) => {
                self.select_for(pool, Capabilities::default())
            }
            Err(problem) => {
                let flavors = self.flavors_for_pool(pool, &pool.machine_image);
                let not_compared = flavors.iter().map(|flavor| self.listed(flavor, FlavorVerdict::NotCompared));
                let mut explanation = ImageExplanation::of(&pool.machine_image);
                explanation.candidates = not_compared.collect();
                explanation.problem = Some(problem.to_string());
                ImageSelection { selected: Err(problem), explanation }
            }
        }
    }

    fn bypasses_profile(&self, pool: &WorkerPool) -> bool {
        self.provider.bypasses_profile(has_encrypted_root_volume(pool)).is_some()
    }

    /// Selects the image of a pool for machines with these capabilities.
    #[must_use]
    pub fn select_for(&self, pool: &WorkerPool, machine: Capabilities) -> ImageSelection<'_> {
        let mut explanation = ImageExplanation::of(&pool.machine_image);
        explanation.machine = with_defaults(&machine, &self.definitions);
        let found = self.in_profile(pool, &machine, &mut explanation).or_else(|in_profile| {
            self.in_kept(pool, &machine, &mut explanation).map_err(|in_status| PoolProblem::ImageUnresolved {
                image: pool.machine_image.name.clone(),
                version: pool.machine_image.version.clone(),
                machine_type: pool.machine_type.clone(),
                in_profile: in_profile.to_string(),
                in_status: in_status.to_string(),
                fitting: self.fitting_text(pool),
            })
        });
        let selected = found.and_then(|found| self.usable(pool, machine, found));
        match &selected {
            Err(problem) => explanation.problem = Some(problem.to_string()),
            Ok(selected) => {
                let is_chosen = |candidate: &ImageCandidate| candidate.verdict == FlavorVerdict::Chosen;
                let chosen = explanation.candidates.iter().enumerate().find(|(_, candidate)| is_chosen(candidate));
                explanation.chosen = chosen.map(|(position, candidate)| ChosenImage {
                    candidate: position,
                    origin: candidate.origin,
                    reference: Some(selected.reference.clone()),
                });
            }
        }
        ImageSelection { selected, explanation }
    }

    /// The capabilities of a machine type. If it has no architecture, that of the pool is used.
    pub(super) fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities {
        let listed = machine_type.capabilities.as_ref();
        let asking = match listed {
            Some(_) => self.provider.architecture_pool(self.context.worker, pool, &machine_type.name),
            None => pool,
        };
        self.provider.machine_capabilities(listed, architecture(asking), &self.definitions)
    }

    /// The flavors of an image that are available to a pool, in the order of the CloudProfile.
    pub(super) fn flavors_for_pool(&self, pool: &WorkerPool, image: &MachineImage) -> Vec<ListedFlavor<'_>> {
        match &self.config {
            Some(config) if self.provider.bypasses_profile(has_encrypted_root_volume(pool)).is_none() => {
                let mut flavors = config.flavors(
                    [&image.name, &image.version],
                    Some(&self.context.worker.spec.region),
                    &self.definitions,
                );
                if self.definitions.is_empty() {
                    // Without declared capabilities, only the old format is used.
                    flavors.retain(|flavor| flavor.location.flavor.is_none());
                }
                flavors
            }
            _ => Vec::new(),
        }
    }

    fn in_profile(
        &self,
        pool: &WorkerPool,
        machine: &Capabilities,
        explanation: &mut ImageExplanation,
    ) -> Result<Found<'_>, NotInProfile> {
        if let Some(why) = self.provider.bypasses_profile(has_encrypted_root_volume(pool)) {
            return Err(NotInProfile::NotRequested { why });
        }
        let config = self.config.as_ref().ok_or(NotInProfile::NoConfig)?;
        let mut flavors = self.flavors_for_pool(pool, &pool.machine_image);
        if flavors.is_empty() {
            let MachineImage { name, version } = &pool.machine_image;
            let is_listed = config.images().iter().any(|listed| listed.image == name && listed.version == version);
            let region = self.context.worker.spec.region.clone();
            return Err(if is_listed { NotInProfile::NotInRegion { region } } else { NotInProfile::NotListed });
        }
        let ranking = rank_flavors(machine, &self.definitions, &flavors, |flavor| &*flavor.capabilities);
        let Ranking { chosen, steps, verdicts } = ranking;
        let candidates = flavors.iter().zip(verdicts).map(|(flavor, verdict)| self.listed(flavor, verdict));
        explanation.candidates = candidates.collect();
        explanation.ranking = steps;
        let chosen = chosen.map_err(NotInProfile::NoFlavor)?;
        let flavor = flavors.swap_remove(chosen);
        let reference = self.image_name(&flavor);
        if reference.is_none() && !self.definitions.is_empty() && self.provider.passes_over_empty_references() {
            let candidate = explanation.candidates.get_mut(chosen);
            candidate.into_iter().for_each(|it| it.verdict = FlavorVerdict::Rejected { mismatches: Vec::new() });
            return Err(NotInProfile::NoReference { region: self.context.worker.spec.region.clone() });
        }
        Ok(Found { source: ImageSource::CloudProfile(flavor.location), reference, capabilities: flavor.capabilities })
    }

    /// The first kept image that fits; images with recorded capabilities take precedence over those without.
    fn in_kept(
        &self,
        pool: &WorkerPool,
        machine: &Capabilities,
        explanation: &mut ImageExplanation,
    ) -> Result<Found<'_>, NotKept> {
        let FallbackImages { origin, path, compared_with, images } = &self.kept;
        let machine = match compared_with {
            ComparedWith::MachineType => Cow::Borrowed(machine),
            ComparedWith::PoolArchitecture => Cow::Owned(only_architecture(architecture(pool))),
        };
        let encrypted = pool.volume.as_ref().and_then(|volume| volume.encrypted).unwrap_or_default();
        let suits = |kept: &KeptImage| {
            kept.image == pool.machine_image && kept.encrypted.is_none_or(|of_image| of_image == encrypted)
        };
        let kept: Vec<(usize, &KeptImage)> = images.iter().enumerate().filter(|(_, kept)| suits(kept)).collect();
        let fits = |capabilities: &Capabilities| are_compatible(capabilities, &machine, &self.definitions);
        let is_recorded = |kept: &KeptImage| kept.made_for.as_ref().is_some_and(fits);
        let fitting = || kept.iter().copied().filter(|(_, kept)| fits(&kept.capabilities));
        let chosen = fitting().find(|(_, kept)| is_recorded(kept)).or_else(|| fitting().next());
        explanation.candidates.extend(kept.iter().map(|(position, kept)| {
            let mismatches = mismatches(&machine, &kept.capabilities, &self.definitions);
            let verdict = match mismatches.is_empty() {
                _ if chosen.is_some_and(|(chosen, _)| chosen == *position) => FlavorVerdict::Chosen,
                true => FlavorVerdict::NotReached,
                false => FlavorVerdict::Rejected { mismatches },
            };
            let KeptImage { reference, capabilities, .. } = (*kept).clone();
            ImageCandidate { origin: *origin, reference, capabilities, verdict }
        }));
        match chosen {
            Some((position, kept)) => Ok(Found {
                source: ImageSource::Kept(position),
                reference: kept.reference.clone(),
                capabilities: Cow::Borrowed(&kept.capabilities),
            }),
            None if kept.is_empty() => Err(NotKept::Missing(path)),
            None => Err(NotKept::Incompatible(path)),
        }
    }

    /// Checks that the candidate has the members that machines require: a reference, and on some clouds an
    /// architecture.
    fn usable<'b>(
        &self,
        pool: &WorkerPool,
        machine: Capabilities,
        found: Found<'b>,
    ) -> Result<SelectedImage<'b>, PoolProblem> {
        let Found { source, reference, capabilities } = found;
        let MachineImage { name: image, version } = pool.machine_image.clone();
        let location = match source {
            ImageSource::CloudProfile(_) => "the CloudProfile",
            ImageSource::Kept(_) => self.kept.path,
        };
        let has_architecture = || capabilities.values(ARCHITECTURE).is_some_and(|values| !values.is_empty());
        let is_listed = matches!(source, ImageSource::CloudProfile(_));
        if is_listed && self.provider.needs_architecture() && !has_architecture() {
            return Err(PoolProblem::ImageWithoutArchitecture { image, version });
        }
        let Some(reference) = reference else {
            let expected = self.provider.image_members();
            return Err(PoolProblem::ImageWithoutReference { image, version, location, expected });
        };
        Ok(SelectedImage { source, reference, capabilities, machine })
    }

    fn listed(&self, flavor: &ListedFlavor<'_>, verdict: FlavorVerdict) -> ImageCandidate {
        let capabilities = flavor.capabilities.clone().into_owned();
        ImageCandidate { origin: Origin::CloudProfile, reference: self.image_name(flavor), capabilities, verdict }
    }

    fn image_name(&self, flavor: &ListedFlavor<'_>) -> Option<ImageName> {
        let reference = flavor.in_region(&self.definitions)?;
        ImageName::of(reference.member, reference.value)
    }
}

fn has_encrypted_root_volume(pool: &WorkerPool) -> bool {
    pool.volume.as_ref().and_then(|volume| volume.encrypted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::{ImageProvider, WorkerImages};
    use crate::provider::{Providers, WorkerContext};
    use wire::api::gardener::{Cluster, ProfileSpec, Worker};
    use wire::api::gotext::json::{decode_lenient, to_go_json};
    use wire::api::gotext::yaml;
    use wire::api::secret::Secrets;

    /// A row of `test/images/*.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        rule: String,
        #[serde(default)]
        definitions: Value,
        #[serde(default)]
        versions: Value,
        images: Option<Value>,
        #[serde(rename = "type", default)]
        machine_type: Value,
        architecture: Option<String>,
        region: Option<String>,
        encrypted: Option<bool>,
        #[serde(default)]
        kept: Value,
        chosen: Option<Value>,
        from: Option<String>,
        #[serde(default)]
        problem: Vec<String>,
        #[serde(default)]
        core: Value,
        #[serde(default)]
        settings: Value,
        errors: Option<Vec<String>>,
    }

    #[derive(Deserialize)]
    struct Table {
        lookups: Vec<Row>,
        refusals: Vec<Row>,
    }

    const TABLES: [(&str, &str); 4] = [
        ("aws", include_str!("../../../../test/images/aws.yaml")),
        ("gcp", include_str!("../../../../test/images/gcp.yaml")),
        ("openstack", include_str!("../../../../test/images/openstack.yaml")),
        ("alicloud", include_str!("../../../../test/images/alicloud.yaml")),
    ];

    fn table(text: &str) -> Table {
        serde_json::from_value(yaml::documents(text).unwrap().remove(0)).unwrap()
    }

    fn document(provider: &str, kind: &str, members: Value) -> Value {
        let mut document = json!({
            "apiVersion": format!("{provider}.provider.extensions.gardener.cloud/v1alpha1"),
            "kind": kind,
        });
        document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        document
    }

    fn profile(provider: &str, row: &Row) -> Value {
        let images = row.images.clone().unwrap_or_else(|| json!([{"name": "linux", "versions": row.versions}]));
        let mut members = json!({ "machineImages": images });
        if provider == "openstack" {
            members["constraints"] =
                json!({"floatingPools": [{"name": "f"}], "loadBalancerProviders": [{"name": "l"}]});
            members["keystoneURL"] = json!("https://keystone.example");
        }
        if let Some(settings) = row.settings.as_object() {
            members.as_object_mut().unwrap().extend(settings.clone());
        }
        json!({
            "type": provider,
            "machineCapabilities": row.definitions,
            "machineImages": row.core,
            "machineTypes": [{"name": "t", "capabilities": row.machine_type}],
            "providerConfig": document(provider, "CloudProfileConfig", members),
        })
    }

    /// The result for the pool: the reference with its place, or the problem.
    fn select(provider: &str, row: &Row) -> Result<(Value, String), String> {
        let kept = |kind| document(provider, kind, json!({"machineImages": row.kept}));
        let worker = json!({
            "metadata": {"name": "w", "namespace": "n"},
            "spec": {
                "type": provider,
                "region": row.region.as_deref().unwrap_or("eu"),
                "infrastructureProviderStatus": kept("InfrastructureStatus"),
                "pools": [{
                    "name": "p",
                    "machineType": "t",
                    "machineImage": {"name": "linux", "version": "1"},
                    "architecture": row.architecture,
                    "volume": {"size": "20Gi", "encrypted": row.encrypted},
                }],
            },
            "status": {"providerStatus": kept("WorkerStatus")},
        });
        let cluster = json!({"spec": {
            "cloudProfile": {"metadata": {"name": "c"}, "spec": profile(provider, row)},
            "shoot": {"spec": {}, "status": {}},
        }});
        let worker: Worker = decode_lenient(&to_go_json(&worker)).unwrap();
        let cluster: Cluster = decode_lenient(&to_go_json(&cluster)).unwrap();
        let context = WorkerContext {
            worker: &worker,
            cloud_profile: cluster.spec.cloud_profile.as_ref().unwrap(),
            shoot: cluster.spec.shoot.as_ref().unwrap(),
            secrets: &Secrets::default(),
            dependencies: None,
        };
        let mut of_machines = Providers::SHIPPED.of_machines.iter().map(|known| *known as &dyn ImageProvider);
        let of_machines = of_machines.find(|known| known.provider_type() == provider);
        let images = WorkerImages::open(of_machines.unwrap(), context);
        let image = images.map_err(|error| error.to_string())?.explain(&worker.spec.pools[0]);
        let Some(chosen) = image.chosen else { return Err(image.problem.unwrap()) };
        let reference = chosen.reference.unwrap();
        assert_eq!(image.candidates[chosen.candidate].reference.as_ref(), Some(&reference), "{}", row.rule);
        let origin = serde_json::to_value(chosen.origin).unwrap().as_str().unwrap().to_owned();
        Ok((json!({ reference.member: reference.value }), origin))
    }

    fn refused(provider: &str, row: &Row) -> Vec<String> {
        let spec: ProfileSpec = decode_lenient(&to_go_json(&profile(provider, row))).unwrap();
        let format = Providers::SHIPPED.profile_format(provider).unwrap();
        match format.open(spec.provider_config.as_deref()) {
            Err(error) => vec![error.to_string()],
            Ok(config) => config.validate(&spec).0.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_rule_of_image_selection() {
        let mut wrong = Vec::new();
        for (provider, text) in TABLES {
            let rows = table(text).lookups;
            assert!(rows.len() >= if provider == "aws" { 5 } else { 11 }, "{provider}");
            for row in rows {
                let found = select(provider, &row);
                let is_right = match (&found, &row.chosen) {
                    (Ok((reference, origin)), Some(chosen)) => {
                        reference == chosen && origin == row.from.as_deref().unwrap_or("cloudProfile")
                    }
                    (Err(problem), None) => {
                        !row.problem.is_empty() && row.problem.iter().all(|words| problem.contains(words))
                    }
                    _ => false,
                };
                if !is_right {
                    wrong.push(format!("{provider}: {}: {found:?}", row.rule));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn every_rule_of_refusing_profiles() {
        let mut wrong = Vec::new();
        for (provider, text) in TABLES {
            for row in table(text).refusals {
                let found = refused(provider, &row);
                let target = row.errors.unwrap();
                let same = found.len() == target.len()
                    && found.iter().zip(&target).all(|(found, target)| found.contains(target.as_str()));
                if !same {
                    wrong.push(format!("{provider}: {}: {found:#?} instead of {target:#?}", row.rule));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
