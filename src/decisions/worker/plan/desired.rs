//! Pure step, the first of every reconcile, preview and explanation: the desired state of a Worker, and its difference
//! from the live objects.
//!
//! ```text
//!  Worker + Cluster + Secrets ─ decode ─► WorkerContext ─ dependencies ─ plan ─► DesiredState
//!                                                                                   │ + MachineObjects
//!                                                                                   ▼
//!                                                           Drift: changes, orphans, whether the status is current
//! ```

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};

use crate::provider::{Dependencies, MachinePlan, Provider, WorkerContext, WorkerError};
use crate::worker::machines::machine_objects::MachineObjects;
use crate::worker::plan::changes::{MachineChanges, Write, changes, replica_rules, waiting, waiting_document};
use crate::worker::plan::class_images::{self, ClassImages, ImagePolicy};
use crate::worker::plan::class_inputs::annotate;
use crate::worker::plan::deployment::target_document;
use crate::worker::plan::gated::apply_gate;
use crate::worker::plan::orphans::{MachineControllerManagerState, Orphans, orphans};
use crate::worker::plan::zone_by_zone::set_whole_bounds;
use crate::worker::plan::zone_facts::GateInputs;
use crate::worker::plan::{Plan, plan};
use crate::worker::request::decode;
use crate::worker::request::other_workers::OtherWorkers;
use crate::worker::status::conditions::Condition;
use crate::worker::status::published::{ProviderStatus, published_deployments};
use wire::api::gardener::{Cluster, MachineDeploymentStatus, Worker};
use wire::api::secret::Secrets;

/// Source of the dependencies of pools at the cloud.
#[derive(Clone, Copy, Debug)]
pub enum CloudView<'a> {
    /// The context: provided dependencies, otherwise those recorded in the provider status.
    Context,
    /// A file that describes the cloud.
    Described(&'a Value),
    /// The cloud is not queried; recorded dependencies are assumed to exist.
    Settled,
}

/// The desired state of a Worker.
#[derive(Clone, Debug)]
pub struct DesiredState<'a> {
    context: WorkerContext<'a>,
    dependencies: Option<Dependencies>,
    /// A plan for each pool, or why there is none.
    pub plan: Plan,
    recorded_status: Value,
    class_images: ClassImages,
}

impl<'a> DesiredState<'a> {
    /// Plans the pools of a Worker from its objects.
    ///
    /// # Errors
    /// When there is no Cluster, or something that all pools share is missing or wrong.
    pub fn of_worker(
        provider: &dyn Provider,
        worker: &'a Worker,
        cluster: Option<&'a Cluster>,
        secrets: &'a Secrets,
        cloud: CloudView<'_>,
    ) -> Result<Self, WorkerError> {
        Self::new(provider, decode::context_of(worker, cluster, secrets)?, cloud)
    }

    /// Plans the pools of a Worker whose objects are decoded.
    ///
    /// # Errors
    /// When something that all pools share is missing or wrong.
    pub fn new(provider: &dyn Provider, context: WorkerContext<'a>, cloud: CloudView<'_>) -> Result<Self, WorkerError> {
        let described = |cloud: &Value| provider.described_dependencies(context, cloud);
        let dependencies = match cloud {
            CloudView::Context => None,
            CloudView::Described(cloud) => described(cloud)?,
            CloudView::Settled => match provider.settled_cloud(context)? {
                Some(cloud) => described(&cloud)?,
                None => None,
            },
        };
        let plan = plan(provider, with_dependencies(context, dependencies.as_ref()))?;
        let recorded_status = context.recorded_provider_status()?;
        Ok(Self { context, dependencies, plan, recorded_status, class_images: ClassImages::default() })
    }

    /// The same where other Workers have the namespace, too: no pool writes what theirs write.
    #[must_use]
    pub fn beside(mut self, others: &OtherWorkers) -> Self {
        others.reject_shared_pools(&mut self.plan);
        self
    }

    /// Keeps the live class of zones that wait, are stopped or are on hold, and pauses zones that roll under a stop. In pools whose zones roll one after the other, it also
    /// gives every zone the surge and unavailability of the whole pool. Nothing differs without settings, and while the
    /// shoot is being deleted. Has to come before [`with_images`](Self::with_images).
    #[must_use]
    pub fn with_gate(self, inputs: &GateInputs<'_>) -> Self {
        let mut desired = self.with_bounds_of_pools();
        if desired.context.shoot.metadata.deletion_timestamp.is_none() {
            apply_gate(&desired.context, &mut desired.plan, inputs);
        }
        desired
    }

    /// Only gives every zone of these pools the surge and unavailability of the whole pool.
    #[must_use]
    pub fn with_bounds_of_pools(mut self) -> Self {
        if self.context.shoot.metadata.deletion_timestamp.is_none() {
            set_whole_bounds(&self.context, &mut self.plan);
        }
        self
    }

    /// Whether a setting names a pool, a budget is set, or a pause ends, so that the plan depends on the live objects.
    #[must_use]
    pub fn depends_on_live_zones(&self) -> bool {
        let Plan { waits, stops, budget, .. } = &self.plan;
        waits.is_in_use || stops.is_in_use || !stops.pauses.is_empty() || budget.limit.is_some()
    }

    /// Applies the policy for classes whose images have changed in the CloudProfile.
    #[must_use]
    pub fn with_images(mut self, provider: &dyn Provider, policy: ImagePolicy, live: &MachineObjects) -> Self {
        self.class_images = ClassImages::of(provider, &mut self.plan, policy, live);
        self
    }

    /// Pools with a class whose image differs from the CloudProfile, each with a message.
    pub fn image_drifts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.class_images.drifts()
    }

    /// The condition about changed images.
    #[must_use]
    pub fn image_drift(&self) -> Option<Condition> {
        self.class_images.condition(&self.context.worker.status.conditions)
    }

    /// The objects that the pools were planned from.
    #[must_use]
    pub fn context(&self) -> WorkerContext<'_> {
        with_dependencies(self.context, self.dependencies.as_ref())
    }

    /// Whether every pool is planned: none is invalid, and none waits for a dependency.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.plan.unplanned().next().is_none()
    }

    /// The bounds for the cluster-autoscaler to write to the status.
    #[must_use]
    pub fn machine_deployments(&self, live: &MachineObjects) -> Vec<MachineDeploymentStatus> {
        let technical_id = &self.context.shoot.status.technical_id;
        published_deployments(&self.plan, self.context.worker, technical_id, live)
    }

    /// Recorded and target provider status.
    #[must_use]
    pub fn provider_status(&self) -> ProviderStatus {
        ProviderStatus { recorded: self.recorded_status.clone(), target: self.plan.provider_status.clone() }
    }

    /// The target MachineDeployment of a placement, without the record of its class inputs.
    #[must_use]
    pub fn deployment_document(&self, machine: &MachinePlan, live: &MachineObjects) -> Value {
        let metadata = &self.context.worker.metadata;
        let [name, namespace] = [&metadata.name, &metadata.namespace].map(|name| name.as_deref().unwrap_or_default());
        let rules = replica_rules(&self.context, live);
        let deployment = &machine.deployment;
        if let Some(waiting) = waiting(machine, &self.plan, live) {
            let mut target = waiting_document(name, namespace, machine, &waiting, rules);
            self.plan.stops.set_pause(&deployment.name.0, &mut target);
            return target;
        }
        let live = live.deployments.get(&deployment.name.0);
        let mut target = target_document(name, namespace, deployment, live, rules);
        self.plan.stops.set_pause(&deployment.name.0, &mut target);
        if let Some(image) = self.class_images.to_record(&deployment.name.0) {
            annotate(&mut target, class_images::ANNOTATION, image);
        }
        target
    }

    /// Compares it with the live objects. New classes are recorded with the time `now`.
    #[must_use]
    pub fn drift(&self, live: &MachineObjects, now: Timestamp) -> Drift<'_> {
        let worker = self.context.worker;
        Drift {
            is_complete: self.is_complete(),
            changes: changes(&self.context, &self.plan, &self.class_images, live, now),
            orphans: orphans(&self.plan, live, MachineControllerManagerState::Running),
            is_status_current: self.machine_deployments(live) == worker.status.machine_deployments
                && self.provider_status().patch().is_none(),
        }
    }
}

/// Adds the dependencies determined here, if any.
fn with_dependencies<'a>(context: WorkerContext<'a>, found: Option<&'a Dependencies>) -> WorkerContext<'a> {
    WorkerContext { dependencies: found.or(context.dependencies), ..context }
}

/// Difference between the live objects and the desired state.
#[derive(Clone)]
pub struct Drift<'a> {
    /// Whether every pool is planned.
    pub is_complete: bool,
    /// Writes per placement, even without changes.
    pub changes: Vec<MachineChanges<'a>>,
    /// Machine objects that are no longer needed.
    pub orphans: Orphans,
    /// Whether the machine deployments and the provider status in the status are up to date.
    pub is_status_current: bool,
}

impl Drift<'_> {
    /// Whether every pool is planned, its machine objects match, and there are no orphans.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_complete && !self.changes.iter().any(MachineChanges::is_to_write) && self.orphans.is_empty()
    }

    /// Whether a reconcile would write and report nothing.
    #[must_use]
    pub fn writes_nothing(&self) -> bool {
        self.is_settled() && self.is_status_current
    }
}

/// Boot scripts are serialized as their length.
impl Serialize for DesiredState<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pools: Vec<Value> = self
            .plan
            .pools
            .iter()
            .map(|pool| match pool {
                Ok(plan) => serde_json::to_value(plan).map_err(serde::ser::Error::custom),
                Err(error) => {
                    Ok(json!({"pool": error.pool, "code": error.problem.code(), "error": error.problem.to_string()}))
                }
            })
            .collect::<Result<_, S::Error>>()?;
        let mut state = serializer.serialize_struct("DesiredState", 2)?;
        state.serialize_field("pools", &pools)?;
        state.serialize_field("providerStatus", &self.plan.provider_status)?;
        state.end()
    }
}

/// Unchanged objects and the content of Secrets are left out.
impl Serialize for Drift<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let changes = self.changes.iter().filter(|change| change.is_to_write());
        let changes: Vec<Value> = changes
            .map(|change| {
                json!({
                    "name": change.machine.deployment.name,
                    "pool": change.machine.deployment.pool_name,
                    "secret": change.secret.as_ref().map(Write::verb),
                    "machineClass": change.class.as_ref().map(Write::document),
                    "machineDeployment": change.deployment.as_ref().map(Write::document),
                })
            })
            .collect();
        let mut drift = serializer.serialize_struct("Drift", 4)?;
        drift.serialize_field("isComplete", &self.is_complete)?;
        drift.serialize_field("changes", &changes)?;
        drift.serialize_field("orphans", &self.orphans)?;
        drift.serialize_field("isStatusCurrent", &self.is_status_current)?;
        drift.end()
    }
}

/// A Worker with decoded objects, for tests.
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "only tests use it")]
pub mod test_support {
    use super::*;
    use crate::provider::test_support::{NAMESPACE, machine_plan};
    use crate::provider::{PoolError, PoolPlan};
    use wire::api::gardener::{CloudProfile, Shoot};

    /// The decoded objects of a Worker with the given status.
    pub struct Objects(pub Worker, pub CloudProfile, pub Shoot, pub Secrets);

    impl Objects {
        /// A Worker with one pool and this status.
        #[must_use]
        pub fn new(status: &Value) -> Self {
            let image = json!({"name": "i", "version": "1"});
            let pool = json!({"name": "a", "machineType": "t", "machineImage": image, "minimum": 2, "maximum": 5});
            let metadata = json!({"name": "w", "namespace": NAMESPACE});
            let worker = json!({"metadata": metadata, "spec": {"type": "azure", "pools": [pool]}, "status": status});
            Self(
                serde_json::from_str(&worker.to_string()).unwrap(),
                serde_json::from_str("{}").unwrap(),
                serde_json::from_str("{}").unwrap(),
                Secrets::default(),
            )
        }

        /// Its desired state with this result for its pool.
        pub fn desired(&self, pool: Result<PoolPlan, PoolError>) -> DesiredState<'_> {
            let Self(worker, cloud_profile, shoot, secrets) = self;
            let context = WorkerContext { worker, cloud_profile, shoot, secrets, dependencies: None };
            let plan = Plan { pools: vec![pool], provider_status: json!({"images": ["i"]}), ..Plan::default() };
            let recorded_status = context.recorded_provider_status().unwrap();
            DesiredState { context, dependencies: None, plan, recorded_status, class_images: ClassImages::default() }
        }
    }

    /// A plan of its pool.
    pub fn planned() -> Result<PoolPlan, PoolError> {
        let machines = vec![machine_plan()];
        Ok(PoolPlan { pool: "a".to_owned(), machines, status_image: json!({}), in_place_hash: None })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::test_support::{Objects, planned};
    use super::*;
    use crate::provider::PoolProblem;
    use crate::provider::azure::Azure;
    use crate::worker::machines::machine_objects::{DigestedObject, LiveDeployment};
    use crate::worker::plan::class_inputs;

    fn after(drift: &Drift<'_>) -> MachineObjects {
        let mut live = MachineObjects::default();
        for change in &drift.changes {
            let [class, secret] = [&change.machine.deployment.class_name.0, &change.machine.deployment.secret_name.0];
            let document = change.class.as_ref().unwrap().after().clone();
            live.classes.insert(class.clone(), DigestedObject::class(document).unwrap());
            let document = change.secret.as_ref().unwrap().after().clone();
            live.class_secrets.insert(secret.clone(), DigestedObject::secret(document));
            let document = change.deployment.as_ref().unwrap().after().clone();
            live.deployments.insert(
                change.machine.deployment.name.0.clone(),
                LiveDeployment::read_without_codes(document).unwrap(),
            );
        }
        live
    }

    #[test]
    fn drift_is_empty_after_write() {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned());
        let first = desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH);
        assert!(!first.is_settled() && !first.writes_nothing());
        let second = desired.drift(&after(&first), Timestamp::now());
        assert!(second.is_settled() && !second.writes_nothing(), "the status lacks the bounds and the images");
        let bounds = desired.machine_deployments(&MachineObjects::default());
        assert_eq!(json!(bounds), json!([{"name": "shoot--p--s-a-z1", "minimum": 2, "maximum": 5}]));
        let objects = Objects::new(&json!({"machineDeployments": bounds, "providerStatus": {"images": ["i"]}}));
        let third = objects.desired(planned());
        assert!(third.drift(&after(&first), Timestamp::now()).writes_nothing());
        for partly in [json!({"machineDeployments": bounds}), json!({"providerStatus": {"images": ["i"]}})] {
            let objects = Objects::new(&partly);
            let drift = objects.desired(planned()).drift(&after(&first), Timestamp::now()).writes_nothing();
            assert!(!drift, "the status has only {partly}");
        }
    }

    #[test]
    fn writes_missing_objects() {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned());
        let whole = after(&desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH));
        let is_settled = |live: MachineObjects| desired.drift(&live, Timestamp::now()).is_settled();
        assert!(is_settled(whole.clone()));
        assert!(!is_settled(MachineObjects { classes: BTreeMap::new(), ..whole.clone() }));
        assert!(!is_settled(MachineObjects { class_secrets: BTreeMap::new(), ..whole.clone() }));
        assert!(!is_settled(MachineObjects { deployments: BTreeMap::new(), ..whole }));
    }

    #[test]
    fn deployment_document_matches_reconcile() {
        let objects = Objects::new(&json!({}));
        let live = MachineObjects::default();
        let desired = objects.desired(planned()).with_images(&Azure, ImagePolicy::Report, &live);
        let drift = desired.drift(&live, Timestamp::UNIX_EPOCH);
        let mut made = drift.changes[0].deployment.as_ref().unwrap().after().clone();
        let annotations = made["metadata"]["annotations"].as_object_mut().unwrap();
        assert!(annotations.remove(class_inputs::ANNOTATION).is_some());
        let document = desired.deployment_document(drift.changes[0].machine, &live);
        assert_eq!(document, made);
        assert_eq!(document["metadata"]["annotations"].as_object().unwrap().len(), 1, "its image is recorded");
        assert_eq!(document["spec"]["replicas"], 2);
        assert_eq!(desired.image_drift().unwrap().reason, "ImagesUnchanged");
        assert_eq!(objects.desired(planned()).image_drift(), None, "nobody looks");
    }

    #[test]
    fn detects_class_being_deleted() {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned());
        let now = Timestamp::UNIX_EPOCH;
        let whole = after(&desired.drift(&MachineObjects::default(), now));
        let is_going = |live: &MachineObjects| desired.drift(live, now).changes[0].is_class_being_deleted;
        let without_deployment = MachineObjects { deployments: BTreeMap::new(), ..whole.clone() };
        assert!(!is_going(&without_deployment), "nobody has asked for its deletion");
        let go = |live: &MachineObjects| {
            let mut live = live.clone();
            live.classes.values_mut().for_each(|class| class.is_being_deleted = true);
            live
        };
        assert!(is_going(&go(&without_deployment)));
        assert!(!is_going(&go(&whole)), "the deployment is there, and uses it");
        let class = whole.classes.keys().next().unwrap();
        let machine = serde_json::from_value(json!({"spec": {"class": {"name": class}}})).unwrap();
        let used = MachineObjects { machines: vec![machine], ..without_deployment.clone() };
        assert!(!is_going(&go(&used)), "it stays as long as it is used");
        let mut held = without_deployment;
        held.class_secrets.values_mut().for_each(|secret| secret.is_being_deleted = true);
        assert!(!is_going(&held), "a Secret stays as long as its class");
        held.classes.clear();
        assert!(is_going(&held), "it goes after its class");
    }

    #[test]
    fn orphans_and_invalid_pools_are_drift() {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned());
        let mut live = after(&desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH));
        let orphan = json!({"metadata": {"name": "old"}});
        live.classes.insert("old".to_owned(), DigestedObject::class(orphan).unwrap());
        assert!(!desired.drift(&live, Timestamp::now()).is_settled());
        let invalid = objects.desired(Err(PoolProblem::VolumeMissing.of_pool("a")));
        assert!(!invalid.drift(&MachineObjects::default(), Timestamp::now()).is_settled());
    }

    #[test]
    fn invalid_provider_status_reports_path() {
        let text = r#"{"metadata": {}, "spec": {"type": "azure"}, "status": {"providerStatus": {"size": 1e999}}}"#;
        let objects = Objects::new(&json!({}));
        let Objects(_, cloud_profile, shoot, secrets) = &objects;
        let worker = serde_json::from_str(text).unwrap();
        let context = WorkerContext { worker: &worker, cloud_profile, shoot, secrets, dependencies: None };
        let error = context.recorded_provider_status().unwrap_err().to_string();
        assert!(error.starts_with("Worker status.providerStatus: "), "{error}");
    }

    #[test]
    fn serializes_without_boot_scripts() {
        let objects = Objects::new(&json!({}));
        let desired = objects.desired(planned());
        let drift = desired.drift(&MachineObjects::default(), Timestamp::UNIX_EPOCH);
        let printed = json!({"desired": desired, "drift": drift});
        assert_eq!(printed["drift"]["changes"][0]["secret"], "create");
        assert_eq!(printed["drift"]["changes"][0]["machineClass"]["create"]["provider"], "Azure");
        assert_eq!(printed["desired"]["pools"][0]["machines"][0]["userData"], "24 bytes");
        let text = printed.to_string();
        assert!(!text.contains("boot-script") && !text.contains("Ym9vdC1zY3Jp"), "{text}");
    }

    #[test]
    fn prefers_own_dependencies_over_context() {
        let Objects(worker, cloud_profile, shoot, secrets) = &Objects::new(&json!({}));
        let before = Dependencies::default();
        let found = Dependencies { records: json!({"a": 1}), ..Dependencies::default() };
        let dependencies = Some(&before);
        let context = WorkerContext { worker, cloud_profile, shoot, secrets, dependencies };
        assert_eq!(with_dependencies(context, Some(&found)).dependencies, Some(&found));
        assert_eq!(with_dependencies(context, None).dependencies, Some(&before));
    }
}
