//! Pebble, a made-up cloud, as a provider: everything specific to this cloud. `docs/development.md` explains it.
//!
//! A machine has a kind, a private network, an image with a different id in each region and, if the pool requests it, a
//! scratch disk. Machines depend on no other object at the cloud.

use decisions::api::gardener::{ErrorCode, WorkerPool};
use decisions::pool::bounds::Bounds;
use decisions::pool::hash::{HashItems, ProviderItems, pool_hash};
use decisions::pool::names::deployment_name;
use decisions::pool::zones::positions;
use decisions::provider::document::Document;
use decisions::provider::explanation::{EffectiveInput, ImageName, Origin};
use decisions::provider::image::{FallbackImages, ImageProvider, ImagesDocument, ImagesDocumentKind, WorkerImages};
use decisions::provider::profile::{
    ConfigType, ImagesOnly, ProfileFormat, RegionImage, RegionalVersion, Repeated, SameVersion,
};
use decisions::provider::{
    ClassContent, KnownErrors, MachinePlan, PoolError, PoolPlan, PoolPlanner, PoolProblem, Provider,
    ProviderExplanation, TargetDeployment, WorkerContext, WorkerError, machine_class, node_template,
    operating_system_labels, pool_config, user_data,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Group and version of its documents.
const API_VERSION: &str = "pebble.provider.extensions.example.org/v1alpha1";

/// The provider of CloudProfiles and Workers of type `pebble`.
pub struct Pebble;

/// The image of one region.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionalImage {
    name: String,
    id: String,
}

impl RegionImage for RegionalImage {
    const API_VERSION: &'static str = API_VERSION;
    const MEMBER: &'static str = "id";
    const REPEATED_VERSIONS: Repeated = Repeated::First;

    fn region(&self) -> &str {
        &self.name
    }

    fn image(&self) -> &str {
        &self.id
    }
}

/// The provider's half of a CloudProfile only contains images.
type CloudProfileConfig = ImagesOnly<RegionalVersion<RegionalImage>>;

impl ProfileFormat for Pebble {
    fn provider_type(&self) -> &'static str {
        "pebble"
    }

    fn config_type(&self) -> ConfigType {
        ConfigType::of::<CloudProfileConfig>(SameVersion::Replaced)
    }
}

/// The document that keeps images that pools have used.
impl ImagesDocumentKind for Pebble {
    const KIND: &'static str = "WorkerStatus";
    const API_VERSION: &'static str = API_VERSION;
}

impl ImageProvider for Pebble {
    fn image_members(&self) -> &'static str {
        "id"
    }

    fn kept_images(&self, context: &WorkerContext<'_>) -> Result<FallbackImages, WorkerError> {
        let status: ImagesDocument<Self> = context.provider_status()?.unwrap_or_default();
        let entries = status.machine_images.iter();
        let kept = entries.map(|entry| entry.kept(ImageName::of("id", &entry.id), entry.capabilities.clone()));
        Ok(FallbackImages::of_worker(kept.collect()))
    }
}

/// The result of the infrastructure controller for the shoot.
#[derive(Default, Deserialize)]
struct InfrastructureStatus {
    network: String,
}

impl Document for InfrastructureStatus {
    const KIND: &'static str = "InfrastructureStatus";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = false;
}

/// Settings of a pool that are specific to this provider.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkerConfig {
    scratch_size: Option<String>,
}

impl Document for WorkerConfig {
    const KIND: &'static str = "WorkerConfig";
    const API_VERSION: &'static str = API_VERSION;
    const STRICT: bool = false;
}

impl Provider for Pebble {
    fn planner<'a>(&self, context: WorkerContext<'a>) -> Result<Box<dyn PoolPlanner + 'a>, WorkerError> {
        let InfrastructureStatus { network } = context.infrastructure_status()?;
        Ok(Box::new(PebbleWorker { context, network, images: WorkerImages::open(&Self, context)? }))
    }

    fn known_errors(&self) -> &'static KnownErrors {
        static KNOWN: KnownErrors = KnownErrors::new(&[(Some(ErrorCode::InfraResourcesDepleted), "quarryempty")], &[]);
        &KNOWN
    }
}

/// Data that all pools of a Worker share.
struct PebbleWorker<'a> {
    context: WorkerContext<'a>,
    network: String,
    images: WorkerImages<'a>,
}

impl PebbleWorker<'_> {
    fn plan(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolProblem> {
        let config: WorkerConfig = pool_config(pool)?;
        // A change of these items rolls the nodes. The items of all providers are already included.
        let mut items = HashItems::default();
        items.push_some("providerConfig.scratchSize", config.scratch_size.as_deref());
        let items = ProviderItems { with_node_agent_secret: items, ..ProviderItems::default() };
        let hashed = pool_hash(pool, self.context.shoot, &items)?;
        let (image, user_data) = (self.images.select(pool).selected?, user_data(&self.context, pool)?);
        let machines = positions(&pool.zones).map(|(position, zone)| {
            let technical_id = &self.context.shoot.status.technical_id;
            let name = deployment_name(technical_id, &pool.name, &format!("-{zone}"));
            let class_name = name.class_name(&hashed.hash);
            let content = ClassContent {
                provider: "Pebble",
                labels: operating_system_labels(pool),
                node_template: node_template(&self.context, pool, zone.to_owned(), None),
                provider_spec: json!({
                    "kind": pool.machine_type, "zone": zone, "network": self.network,
                    "image": image.reference.value,
                    "scratchSize": config.scratch_size,
                }),
            };
            let (bounds, labels) = (Bounds::in_zone(pool, position)?, pool.labels.clone());
            Ok(MachinePlan {
                zone: Some(zone.to_owned()),
                class: machine_class(&self.context, &class_name, content),
                user_data: user_data.clone(),
                deployment: TargetDeployment::of_pool(pool, name, &class_name, bounds, labels),
                hash_items: hashed.items.clone(),
            })
        });
        Ok(PoolPlan {
            pool: pool.name.clone(),
            machines: machines.collect::<Result<_, PoolProblem>>()?,
            status_image: image.to_status(&pool.machine_image),
            in_place_hash: hashed.in_place.clone(),
        })
    }
}

impl PoolPlanner for PebbleWorker<'_> {
    fn plan_pool(&self, pool: &WorkerPool) -> Result<PoolPlan, PoolError> {
        self.plan(pool).map_err(|problem| problem.of_pool(&pool.name))
    }

    fn explain_pool(&self, pool: &WorkerPool) -> ProviderExplanation {
        let network = EffectiveInput::of(Origin::InfrastructureStatus, "network", "network", &self.network);
        let machines = self.plan(pool).map(|plan| plan.machines).unwrap_or_default();
        ProviderExplanation {
            inputs: vec![network],
            image: self.images.explain(pool),
            placements: machines.iter().map(Into::into).collect(),
        }
    }

    fn provider_status(&self, planned: &[&PoolPlan], failed: &[&WorkerPool]) -> Result<Value, WorkerError> {
        let images = self.images.status_images(planned, failed);
        Ok(json!({"apiVersion": API_VERSION, "kind": "WorkerStatus", "machineImages": images}))
    }
}
