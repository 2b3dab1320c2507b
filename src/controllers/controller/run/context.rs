//! State shared by all reconciles.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;

use crate::controller::report::metrics::Metrics;
use crate::controller::report::node_counts::NodeCounts;
use crate::controller::run::memory::Memory;
use crate::controller::run::roll_slots::RollSlots;
use crate::controller::run::served::Served;
use decisions::provider::Provider;
use decisions::worker::plan::class_images::ImagePolicy;
use decisions::worker::plan::roll_budget::RollBudget;
use decisions::worker::plan::slots::SlotOwner;
use decisions::worker::request::other_workers::OtherWorkers;
use decisions::worker::status::every_node_ready::HealthCheck;
use runtime::cloud::Clouds;
use runtime::cluster::cache::SeedCache;
use runtime::cluster::decode_guard::LazyObject;
use runtime::cluster::events::EventRecorder;
use runtime::cluster::garden::Garden;
use runtime::cluster::responses::Responses;
use runtime::cluster::shoot_namespace::ShootNamespace;
use runtime::process::clock::Clock;
use runtime::process::shard::{Shard, Standing};
use wire::api::gardener::Worker;

pub(crate) struct ControllerContext {
    pub(crate) client: Client,
    /// Records which requests to the API server are unanswered.
    pub(crate) responses: Responses,
    pub(crate) clock: Clock,
    pub(crate) garden: Garden,
    pub(crate) clouds: Clouds,
    pub(crate) events: EventRecorder,
    pub(crate) served: Served,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) memory: Memory,
    pub(crate) cache: Arc<SeedCache>,
    /// Whether a new generation or a changed Cluster starts an operation without an annotation.
    pub(crate) ignores_operation_annotation: bool,
    /// Which controller owns the condition `EveryNodeReady`.
    pub(crate) health_check: HealthCheck,
    /// Node counts of shoots, if this controller owns that condition.
    pub(crate) node_counts: Option<Arc<NodeCounts>>,
    /// Policy for classes whose image has changed in the CloudProfile.
    pub(crate) image_policy: ImagePolicy,
    /// `--roll-budget`: slots of rolls that no owner requested.
    pub(crate) roll_slots: Option<Arc<RollSlots>>,
    /// `--shadow`: compares only, and writes nothing.
    pub(crate) is_dry_run: bool,
    /// `--shard-ring`: which shard this process is.
    pub(crate) shard: Option<Shard>,
}

impl ControllerContext {
    /// Reads and writes the machine objects of a Worker.
    pub(crate) fn shoot_namespace(&self, namespace: &str, provider: &'static dyn Provider) -> ShootNamespace {
        ShootNamespace::new(self.client.clone(), Arc::clone(&self.cache), namespace, provider)
    }

    /// The other Workers of the namespace of a Worker. One that can't be decoded has no pools that are known.
    pub(crate) fn other_workers(&self, own: &Worker) -> OtherWorkers {
        let workers = &self.cache.workers.0;
        let own_name = own.metadata.name.as_deref().unwrap_or_default();
        let namespace = own.metadata.namespace.as_deref().unwrap_or_default();
        let names = workers.names(namespace).into_iter().filter(|name| name != own_name);
        let others: Vec<Arc<Worker>> =
            names.filter_map(|name| self.cache.workers.get(namespace, &name)?.object().ok()).collect();
        if others.is_empty() {
            OtherWorkers::default()
        } else {
            OtherWorkers::new(own, others.iter().map(AsRef::as_ref))
        }
    }

    /// The roll budget for a comparison that writes nothing, if one is set.
    pub(crate) fn budget_of(&self, worker: &Worker) -> Option<RollBudget> {
        let slots = self.roll_slots.as_ref()?;
        let namespace = worker.metadata.namespace.as_deref().unwrap_or_default();
        let uid = worker.metadata.uid.as_deref().unwrap_or_default();
        Some(slots.view(SlotOwner { namespace, uid }, &self.cache))
    }

    /// Whether a Worker with these labels belongs to this shard. Always true without sharding.
    pub(crate) fn owns(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.standing(labels) != Standing::NotOurs)
    }

    /// Drops everything kept for a Worker that was deleted or now belongs to another shard.
    pub(crate) fn forget(&self, worker: &LazyObject<Worker>) {
        let namespace = worker.namespace();
        let uid = worker.uid();
        self.memory.forget(uid);
        if let Some(counts) = &self.node_counts {
            counts.forget(uid);
        }
        if let Ok(worker) = worker.object()
            && let Some(cloud) = self.clouds.for_worker_type(&worker.spec.worker_type)
        {
            cloud.forget(uid);
        }
        if let Some(slots) = &self.roll_slots {
            slots.forget(uid);
        }
        self.cache.secrets.forget_worker(uid);
        self.cache.clusters.forget(namespace);
        if !self.cache.workers.0.has_any_of(namespace) {
            self.cache.machine_objects.forget_lists(namespace);
        }
        self.metrics.forget(namespace);
    }
}
