//! Which image a pool gets, for every provider that says nothing special about it: of those that the CloudProfile lists,
//! else of those that are kept beside it.
//!
//! ```text
//!  Worker + CloudProfile ── ImageProvider ──► listed images, kept images ─┬─► choose   what machines start from
//!                                                                         └─► explain  why
//! ```
//!
//! Some providers know only images and make no machines. One that makes machines can choose their images by this as well.

use std::borrow::Cow;
use std::sync::Arc;

use super::document::DocumentError;
use super::explanation::{ImageExplanation, ImageName, Origin};
use super::image::{NotInProfile, architecture, best_candidate, definitions_or, machine_type};
use super::image_explanation::{ChosenFrom, FoundImage, ImageChoice, KnownImage, explain_image};
use super::kept_images::{KeptImage, KeptImages};
use super::profile::{ListedFlavor, ProfileConfig, ProfileFormat};
use super::{PoolProblem, WorkerContext, WorkerError};
use crate::api::gardener::{Capabilities, CapabilityDefinition, MachineImage, MachineType, WorkerPool};
use crate::capabilities::are_compatible;

/// A provider of images. One that is no [`Provider`](super::Provider) as well has CloudProfiles that are understood, and
/// Workers that are not served.
pub trait ImageProvider: ProfileFormat {
    /// The members of documents that name an image, for messages.
    fn image_members(&self) -> &'static str;

    /// What pools may start from when the CloudProfile gives no image.
    ///
    /// # Errors
    /// When the document that keeps them can't be read.
    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<KeptImages, WorkerError>;

    /// Why the machines of a pool don't start from an image of the CloudProfile, whatever it lists.
    fn bypasses_profile(&self, _pool: &WorkerPool) -> Option<&'static str> {
        None
    }
}

/// The images of one Worker.
pub struct WorkerImages<'a> {
    provider: &'a dyn ImageProvider,
    context: WorkerContext<'a>,
    config: Option<Arc<dyn ProfileConfig>>,
    kept: KeptImages,
    definitions: Cow<'a, [CapabilityDefinition]>,
}

impl<'a> WorkerImages<'a> {
    /// Decodes what all pools share.
    ///
    /// # Errors
    /// When a document can't be read.
    pub fn open(provider: &'a dyn ImageProvider, context: WorkerContext<'a>) -> Result<Self, WorkerError> {
        let spec = &context.cloud_profile.spec;
        // The largest document of all, which many Workers share; so its decoded form is kept beside the profile.
        let decoded = spec.decoded_provider_config.get_or_decode(|| {
            let open = |raw| provider.open(Some(raw)).map(Arc::<dyn ProfileConfig>::from);
            spec.provider_config.as_deref().map(open).transpose()
        });
        let config: Result<_, DocumentError> = (*decoded).clone();
        let config = config.map_err(|source| WorkerError::Document { path: context.profile_config_path(), source })?;
        let definitions = definitions_or(&spec.machine_capabilities, || provider.old_format_definitions());
        Ok(Self { kept: provider.kept_images(&context)?, provider, context, config, definitions })
    }

    /// The image that a pool's machines start from, as it is to be kept: with the capabilities of its flavor.
    ///
    /// # Errors
    /// When the machine type is unknown, or nothing fits it.
    pub fn choose(&self, pool: &WorkerPool) -> Result<KeptImage, PoolProblem> {
        let images = PoolImages { images: self, pool };
        let machine = images.capabilities_of(machine_type(&self.context, pool)?, pool);
        let found = images.found(pool, &machine)?;
        let kept = found.kept.and_then(|position| images.kept_for_pool().nth(position));
        if let Some(kept) = kept {
            return Ok(kept.clone());
        }
        let image = pool.machine_image.clone();
        let flavor = self.best_flavor(&image, &machine);
        let capabilities = flavor.map(|flavor| flavor.capabilities.into_owned()).unwrap_or_default();
        Ok(KeptImage { image, reference: found.reference, capabilities, encrypted: None })
    }

    /// What was kept before.
    #[must_use]
    pub fn kept_before(&self) -> &[KeptImage] {
        &self.kept.images
    }

    /// Which image a pool gets, and why.
    #[must_use]
    pub fn explain(&self, pool: &WorkerPool) -> ImageExplanation {
        explain_image(&PoolImages { images: self, pool }, pool)
    }

    fn flavors(&self, image: &MachineImage) -> Vec<ListedFlavor<'_>> {
        self.flavors_in(image, Some(&self.context.worker.spec.region))
    }

    fn flavors_in(&self, image: &MachineImage, region: Option<&str>) -> Vec<ListedFlavor<'_>> {
        self.config.iter().flat_map(|config| config.flavors(&image.name, &image.version, region)).collect()
    }

    fn best_flavor(&self, image: &MachineImage, machine: &Capabilities) -> Result<ListedFlavor<'_>, NotInProfile> {
        if self.config.is_none() {
            return Err(NotInProfile::NoConfig);
        }
        let flavors = self.flavors(image);
        if flavors.is_empty() && !self.flavors_in(image, None).is_empty() {
            return Err(NotInProfile::NotInRegion { region: self.context.worker.spec.region.clone() });
        }
        best_candidate(flavors, machine, &self.definitions, |flavor| &*flavor.capabilities)
    }

    /// What is kept of an image, for any machine.
    fn kept<'b>(&'b self, image: &'b MachineImage) -> impl Iterator<Item = &'b KeptImage> {
        self.kept.images.iter().filter(move |kept| kept.image == *image)
    }
}

/// The images of a pool.
struct PoolImages<'a> {
    images: &'a WorkerImages<'a>,
    pool: &'a WorkerPool,
}

impl PoolImages<'_> {
    fn in_profile(&self, machine: &Capabilities) -> Result<FoundImage, NotInProfile> {
        if let Some(why) = self.images.provider.bypasses_profile(self.pool) {
            return Err(NotInProfile::NotAsked { why });
        }
        let best = self.images.best_flavor(&self.pool.machine_image, machine)?;
        Ok(FoundImage { reference: image_name(&best), kept: None })
    }

    fn in_kept(&self, machine: &Capabilities) -> Result<FoundImage, String> {
        let KeptImages { path, .. } = self.images.kept;
        let mut kept = self.kept_for_pool().enumerate().peekable();
        if kept.peek().is_none() {
            return Err(format!("{path} has no such image and version"));
        }
        let found = kept.find(|(_, kept)| are_compatible(&kept.capabilities, machine, &self.images.definitions));
        let (position, found) = found.ok_or_else(|| format!("{path} has it only for other machine capabilities"))?;
        Ok(FoundImage { reference: found.reference.clone(), kept: Some(position) })
    }

    /// What is kept of the pool's image, with the kind of root volume that the pool has.
    fn kept_for_pool(&self) -> impl Iterator<Item = &KeptImage> {
        let encrypted = self.pool.volume.as_ref().and_then(|volume| volume.encrypted).unwrap_or_default();
        let suits = move |kept: &&KeptImage| kept.encrypted.is_none_or(|of_image| of_image == encrypted);
        self.images.kept(&self.pool.machine_image).filter(suits)
    }
}

impl ImageChoice for PoolImages<'_> {
    fn chosen_from(&self) -> ChosenFrom<'_> {
        let WorkerImages { context, config, definitions, .. } = self.images;
        ChosenFrom { context, config: config.as_deref(), definitions }
    }

    fn capabilities_of(&self, machine_type: &MachineType, pool: &WorkerPool) -> Capabilities {
        let WorkerImages { provider, definitions, .. } = self.images;
        provider.machine_capabilities(machine_type.capabilities.as_ref(), architecture(pool), definitions)
    }

    fn listed(&self, image: &MachineImage) -> Vec<KnownImage<'_>> {
        if self.images.provider.bypasses_profile(self.pool).is_some() {
            return Vec::new();
        }
        let flavors = self.images.flavors(image).into_iter();
        flavors.map(|flavor| KnownImage { reference: image_name(&flavor), capabilities: flavor.capabilities }).collect()
    }

    fn kept(&self, _image: &MachineImage) -> Vec<KnownImage<'_>> {
        let known = self.kept_for_pool().map(|kept| KnownImage {
            reference: kept.reference.clone(),
            capabilities: Cow::Borrowed(&kept.capabilities),
        });
        known.collect()
    }

    fn kept_origin(&self) -> Origin {
        self.images.kept.origin
    }

    fn found(&self, pool: &WorkerPool, machine: &Capabilities) -> Result<FoundImage, PoolProblem> {
        let MachineImage { name, version } = pool.machine_image.clone();
        let found = self.in_profile(machine).or_else(|in_profile| {
            self.in_kept(machine).map_err(|in_status| PoolProblem::ImageUnresolved {
                image: name.clone(),
                version: version.clone(),
                machine_type: pool.machine_type.clone(),
                in_profile: in_profile.to_string(),
                in_status,
            })
        })?;
        if found.reference.is_none() {
            let place = if found.kept.is_some() { self.images.kept.path } else { "the CloudProfile" };
            let expected = self.images.provider.image_members();
            return Err(PoolProblem::ImageWithoutReference { image: name, version, place, expected });
        }
        Ok(found)
    }
}

fn image_name(flavor: &ListedFlavor<'_>) -> Option<ImageName> {
    let reference = flavor.references.first().filter(|reference| !reference.value.is_empty())?;
    Some(ImageName { member: reference.member.to_owned(), value: reference.value.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::WorkerImages;
    use crate::api::gardener::{Cluster, ProfileSpec, Worker};
    use crate::api::gotext::json::{decode_lenient, to_go_json};
    use crate::api::gotext::yaml;
    use crate::api::secret::Secrets;
    use crate::provider::{Providers, WorkerContext};

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

    const TABLES: [(&str, &str); 3] = [
        ("gcp", include_str!("../../test/images/gcp.yaml")),
        ("openstack", include_str!("../../test/images/openstack.yaml")),
        ("alicloud", include_str!("../../test/images/alicloud.yaml")),
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

    /// What the pool gets: the reference with the place where it was found, or the problem.
    fn look_up(provider: &str, row: &Row) -> Result<(Value, String), String> {
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
        let images = WorkerImages::open(Providers::SHIPPED.image_provider(provider).unwrap(), context);
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
    fn every_rule_of_looking_images_up() {
        let mut wrong = Vec::new();
        for (provider, text) in TABLES {
            let rows = table(text).lookups;
            assert!(rows.len() > 10, "{provider}");
            for row in rows {
                let found = look_up(provider, &row);
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
                let (found, wanted) = (refused(provider, &row), row.errors.unwrap());
                let same = found.len() == wanted.len()
                    && found.iter().zip(&wanted).all(|(found, wanted)| found.contains(wanted.as_str()));
                if !same {
                    wrong.push(format!("{provider}: {}: {found:#?} instead of {wanted:#?}", row.rule));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
