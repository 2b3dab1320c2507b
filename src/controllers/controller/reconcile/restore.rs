//! I/O step of a shoot that was migrated to this seed: recreates the objects of its machines, which kept running at
//! the cloud (docs/contract.md#migration).
//!
//! ```text
//!  classes that machines still name, machine sets, machines ──► class, Secret, deployment
//!    ──► machine-controller-manager starts ──► as in any other reconcile
//! ```
//!
//! A deployment is created after all objects that it owns, so an existing deployment is completely restored. After a
//! crash, only objects of missing deployments are restored, and none that machine-controller-manager has deleted
//! since.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::Value;
use tracing::info;

use decisions::provider::{MachinePlan, WorkerContext};
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::machines::machine_state::{DeploymentState, KeptDocument, MachineState, MachineStateError};
use decisions::worker::plan::Plan;
use decisions::worker::plan::changes::class_of_name;
use runtime::cluster::PARALLEL_REQUESTS;
use runtime::cluster::garden::{Garden, GardenError};
use runtime::process::failure_reason::reason;
use wire::api::machine::{Machine, MachineClass, MachineSet};

/// Maximum number of objects held in memory as documents.
const BATCH_SIZE: usize = 100;

/// Errors that prevent a restore of the machines.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// They are not in the Worker and can't be read from the garden.
    #[error(transparent)]
    Garden(#[from] GardenError),
    /// The saved state can't be decoded.
    #[error(transparent)]
    State(#[from] MachineStateError),
    /// An object can't be created.
    #[error("could not restore {kind} '{namespace}/{name}': {}", reason(source))]
    Create {
        /// Kind of the object, such as `MachineSet`.
        kind: &'static str,
        namespace: String,
        name: String,
        source: kube::Error,
    },
    /// The saved state of an object can't be sent as an object.
    #[error("{kind} of a kept machine deployment is no object: {source}")]
    Document {
        /// Kind of the object, such as `MachineSet`.
        kind: &'static str,
        source: serde_json::Error,
    },
}

/// Creates the saved machine sets and machines of all planned deployments that do not exist yet. Returns the replicas
/// of these deployments.
///
/// # Errors
/// If the saved state can't be read or an object can't be created. Then no deployment may be created either.
pub(crate) async fn restore_machines(
    client: &Client,
    garden: &Garden,
    context: &WorkerContext<'_>,
    plan: &Plan,
    live: &MachineObjects,
) -> Result<BTreeMap<String, i32>, RestoreError> {
    let missing: Vec<&MachinePlan> =
        plan.machines().filter(|machine| !live.deployments.contains_key(&machine.deployment.name.0)).collect();
    if missing.is_empty() {
        return Ok(BTreeMap::new());
    }
    let state = machine_state(garden, context).await?;
    let kept: Vec<(&MachinePlan, &DeploymentState)> = missing
        .iter()
        .filter_map(|machine| Some((*machine, state.of_deployment(&machine.deployment.name.0)?)))
        .collect();
    info!(deployments = missing.len(), kept = kept.len(), "bringing machines back");
    let namespace = context.worker.metadata.namespace.as_deref().unwrap_or_default();
    let (secrets, classes) = classes_before(plan, &kept, namespace)?;
    create_all(&api::<Secret>(client, namespace), "Secret", namespace, secrets.into_iter().map(Ok)).await?;
    create_all(&api::<MachineClass>(client, namespace), "MachineClass", namespace, classes.into_iter().map(Ok)).await?;
    let sets = kept.iter().flat_map(|(_, state)| state.machine_sets(namespace));
    create_all(&api::<MachineSet>(client, namespace), "MachineSet", namespace, sets).await?;
    let machines = kept.iter().flat_map(|(_, state)| state.machines(namespace));
    create_all(&api::<Machine>(client, namespace), "Machine", namespace, machines).await?;
    Ok(kept.into_iter().map(|(machine, state)| (machine.deployment.name.0.clone(), state.replicas)).collect())
}

/// Secrets and classes that saved machines refer to and no pool has any more, because the machines were not replaced
/// yet or were updated in place.
fn classes_before(
    plan: &Plan,
    kept: &[(&MachinePlan, &DeploymentState)],
    namespace: &str,
) -> Result<(Vec<Value>, Vec<Value>), RestoreError> {
    let target = plan.target_classes();
    let mut secrets = Vec::new();
    let mut classes = Vec::new();
    for (machine, state) in kept {
        let mut names = state.classes(&machine.deployment.name.0);
        names.retain(|name| !target.iter().any(|target| target.0 == *name));
        for name in names {
            let (secret, class) = class_of_name(machine, namespace, &name);
            let document = |source| RestoreError::Document { kind: "Secret", source };
            secrets.push(serde_json::to_value(secret).map_err(document)?);
            classes.push(class);
        }
    }
    Ok((secrets, classes))
}

/// The saved machine state, from the Worker or from the garden.
async fn machine_state(garden: &Garden, context: &WorkerContext<'_>) -> Result<MachineState, RestoreError> {
    if let Some(document) = &context.worker.status.state {
        return Ok(MachineState::read(document.get())?);
    }
    let of_shoot = |text: &Option<String>| text.clone().unwrap_or_default();
    let namespace = of_shoot(&context.shoot.metadata.namespace);
    let name = of_shoot(&context.shoot.metadata.name);
    let shoot_state = garden.shoot_state(&namespace, &name).await?;
    Ok(shoot_state.machine_state().map(|document| MachineState::read(document.get())).transpose()?.unwrap_or_default())
}

fn api<K>(client: &Client, namespace: &str) -> Api<DynamicObject>
where
    K: kube::Resource<DynamicType = ()>,
{
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<K>(&()))
}

/// Creates objects in parallel. The first failure is reported after all were tried.
async fn create_all(
    api: &Api<DynamicObject>,
    kind: &'static str,
    namespace: &str,
    mut documents: impl Iterator<Item = KeptDocument> + Send,
) -> Result<(), RestoreError> {
    let mut outcome = Ok(());
    loop {
        // In batches, because decoded documents take ten times the memory.
        let some: Vec<_> = documents.by_ref().take(BATCH_SIZE).collect();
        if some.is_empty() {
            return outcome;
        }
        let creations = some.into_iter().map(|document| create(api.clone(), kind, namespace.to_owned(), document));
        let creations: Vec<_> = creations.collect();
        let mut results = stream::iter(creations).buffer_unordered(PARALLEL_REQUESTS);
        while let Some(result) = results.next().await {
            outcome = outcome.and(result);
        }
    }
}

/// Creates an object. An existing one stays unchanged.
async fn create(
    api: Api<DynamicObject>,
    kind: &'static str,
    namespace: String,
    document: KeptDocument,
) -> Result<(), RestoreError> {
    let document = document?;
    let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let object = serde_json::from_value(document).map_err(|source| RestoreError::Document { kind, source })?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(source) => Err(RestoreError::Create { kind, namespace, name, source }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::controller::test_seed::{CONTROLLER, DEPLOYMENT, DEPLOYMENT_NAME as NAME, Seed, WORKER, kept_machines};

    #[tokio::test(start_paused = true)]
    async fn machines_that_have_moved_are_made_before_their_deployment_which_keeps_its_replicas() {
        let (seed, context) = Seed::moved(&kept_machines());
        // A crash in the middle of the restore.
        seed.put(&format!("machines/{NAME}-0"), json!({"metadata": {"name": format!("{NAME}-0")}}));
        seed.reconcile(&context).await.unwrap();
        let writes = seed.writes();
        let before = ["secrets", "machineclasses"];
        let plurals = ["machinesets", "machines", "secrets", "machineclasses", "machinedeployments"];
        let mut made: Vec<&str> = writes.iter().filter_map(|line| line.strip_prefix("POST ")).collect();
        made.dedup();
        assert_eq!(made, [&before[..], &plurals].concat());
        assert_eq!(seed.all("machines/").len(), 4);
        assert_eq!(seed.get(DEPLOYMENT).unwrap()["spec"]["replicas"], 4);
        assert_eq!(seed.get(CONTROLLER).unwrap()["spec"]["replicas"], 1, "all is back");
        seed.remove("machines/");
        seed.reconcile(&context).await.unwrap();
        assert!(seed.all("machines/").is_empty(), "machine-controller-manager has deleted them since");
    }

    #[tokio::test(start_paused = true)]
    async fn machines_that_are_of_no_class_of_the_pool_any_more_get_one_under_the_name_that_they_have() {
        let (seed, context) = Seed::moved(&kept_machines());
        seed.reconcile(&context).await.unwrap();
        let target = seed.get(DEPLOYMENT).unwrap()["spec"]["template"]["spec"]["class"]["name"].clone();
        let of = |plural: &str, name: &Value| seed.get(&format!("{plural}/{}", name.as_str().unwrap())).unwrap();
        let before = json!("c");
        let [mut class, planned] = [&before, &target].map(|name| of("machineclasses", name));
        assert_eq!((&class["metadata"]["name"], &class["secretRef"]["name"]), (&before, &before));
        for member in ["metadata", "secretRef"] {
            class[member]["name"] = target.clone();
        }
        let content =
            |class: &Value| ["providerSpec", "secretRef", "credentialsSecretRef"].map(|member| class[member].clone());
        assert_eq!(content(&class), content(&planned));
        let [secret, planned] = [&before, &target].map(|name| of("secrets", name));
        assert_eq!(
            (&secret["data"], &secret["metadata"]["labels"]),
            (&planned["data"], &planned["metadata"]["labels"])
        );
        assert_eq!(seed.all("machineclasses/").len(), 2, "one for all machines");
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_can_not_be_brought_back_holds_up_its_deployment() {
        let (seed, context) = Seed::moved(&kept_machines());
        seed.refuse(|line, _| (line == "POST machines").then_some((403, "Forbidden")));
        seed.reconcile(&context).await.unwrap();
        let error = seed.last("/status/lastError/description");
        assert!(
            error.contains("could not restore Machine 'shoot--garden--mail/shoot--garden--mail-web-z1-"),
            "{error}"
        );
        assert_eq!(seed.get(DEPLOYMENT), None);
        assert_eq!(seed.get(CONTROLLER).unwrap()["spec"]["replicas"], 0);
    }

    #[tokio::test(start_paused = true)]
    async fn machine_controller_manager_waits_for_all_that_has_moved() {
        let (seed, context) = Seed::moved(&kept_machines());
        seed.refuse(|line, class| {
            (line == "POST machineclasses" && class["metadata"]["name"] != "c").then_some((403, "Forbidden"))
        });
        seed.reconcile(&context).await.unwrap();
        assert_eq!((seed.state().as_str(), seed.all("machines/").len()), ("Error", 4));
        assert_eq!(seed.get(CONTROLLER).unwrap()["spec"]["replicas"], 0);
    }

    /// Gardener #13594 moves this work to gardenlet.
    #[tokio::test(start_paused = true)]
    async fn tolerates_objects_restored_by_gardenlet() {
        let (seed, context) = Seed::moved(&kept_machines());
        let [set, machine] = ["machinesets/", "machines/"].map(|plural| format!("{plural}{NAME}"));
        let labels = json!({"name": NAME});
        let class = json!({"name": "c"});
        seed.put(&format!("{set}-s"), json!({"metadata": {"name": format!("{NAME}-s"), "labels": labels}}));
        for number in 0..4 {
            let metadata = json!({"name": format!("{NAME}-{number}"), "labels": labels});
            seed.put(&format!("{machine}-{number}"), json!({"metadata": metadata, "spec": {"class": class}}));
        }
        seed.reconcile(&context).await.unwrap();
        assert_eq!((seed.all("machines/").len(), seed.all("machinesets/").len()), (4, 1));
        assert_eq!(seed.get(DEPLOYMENT).unwrap()["spec"]["replicas"], 4);
        assert_eq!(seed.get(CONTROLLER).unwrap()["spec"]["replicas"], 1);
    }

    #[tokio::test(start_paused = true)]
    async fn restored_deployments_need_no_machine_state() {
        let (seed, context) = Seed::settled().await;
        let last = json!({"type": "Migrate", "state": "Succeeded", "progress": 100});
        seed.merge(WORKER, json!({"status": {"lastOperation": last, "state": null}}));
        seed.merge(CONTROLLER, json!({"spec": {"replicas": 0}}));
        seed.request("restore");
        seed.requested();
        seed.reconcile(&context).await.unwrap();
        let created: Vec<String> = seed.writes().into_iter().filter(|line| line.starts_with("POST machine")).collect();
        assert_eq!((created, seed.last("/status/lastError/description")), (vec![], String::new()));
        assert_eq!(seed.get(CONTROLLER).unwrap()["spec"]["replicas"], 1);
    }

    /// Gardener #16036 lets hibernated shoots migrate.
    #[tokio::test(start_paused = true)]
    async fn hibernated_shoot_migrates_without_writes_to_machines() {
        let (seed, context) = Seed::settled().await;
        seed.hibernate();
        seed.merge(CONTROLLER, json!({"spec": {"replicas": 0}}));
        seed.request("migrate");
        seed.requested();
        seed.reconcile(&context).await.unwrap();
        let others: Vec<String> =
            seed.writes().into_iter().filter(|line| !line.contains("workers/") && !line.contains("events")).collect();
        assert_eq!(others, Vec::<String>::new());
        assert_eq!((seed.last("/status/lastOperation/type"), seed.state()), ("Migrate".into(), "Succeeded".into()));
        let metadata = &seed.get(WORKER).unwrap()["metadata"];
        assert_eq!(
            (&metadata["annotations"]["gardener.cloud/operation"], metadata["finalizers"].as_array()),
            (&Value::Null, Some(&vec![]))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn machines_that_are_not_kept_in_the_worker_are_read_from_the_garden() {
        let (seed, context) = Seed::moved(&Value::Null);
        seed.reconcile(&context).await.unwrap();
        let error = seed.last("/status/lastError/description");
        assert!(error.contains("garden client is missing"), "{error}");
        assert_eq!(seed.get(DEPLOYMENT), None);
    }
}
