//! The target state of a Worker according to the program's pure decisions, which every write must be based on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gardener_extension_worker::api::gardener::{Cluster, Worker};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::api::secret::{SecretContent, Secrets};
use gardener_extension_worker::provider::{MachinePlan, Providers};
use gardener_extension_worker::worker::plan::Plan;
use gardener_extension_worker::worker::plan::desired::{CloudView, DesiredState};
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::machines::NODE_AGENT_LABEL;

/// The target state of a machine deployment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TargetDeployment {
    pub(crate) class: String,
    /// The node agent Secret in the labels of its nodes.
    pub(crate) key: Option<String>,
    pub(crate) provider_spec: Value,
    pub(crate) minimum: i64,
    pub(crate) maximum: i64,
}

/// The target state of a Worker.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Expected {
    /// Machine deployments by name.
    pub(crate) deployments: BTreeMap<String, TargetDeployment>,
    /// Pools that cannot be planned; their objects stay unchanged.
    pub(crate) unplanned: BTreeSet<String>,
}

impl Expected {
    pub(crate) fn get(&self, deployment: &str) -> Option<&TargetDeployment> {
        self.deployments.get(deployment)
    }
}

thread_local! {
    /// Caches plans, because lives often repeat states and planning is slow.
    static KNOWN: RefCell<HashMap<String, Arc<Expected>>> = RefCell::default();
}

/// The target state of a Worker with these objects.
pub(crate) fn expected<'a>(worker: &Value, cluster: &Value, secrets: impl Iterator<Item = &'a Value>) -> Arc<Expected> {
    let metadata =
        serde_json::json!({"name": worker["metadata"]["name"], "namespace": worker["metadata"]["namespace"]});
    let text = format!(
        r#"{{"apiVersion":{},"kind":"Worker","metadata":{metadata},"spec":{},"status":{{"providerStatus":{}}}}}"#,
        worker["apiVersion"], worker["spec"], worker["status"]["providerStatus"]
    );
    // The only parts of a Cluster that change in lives and affect the plan.
    let fault_domains = &provider_config(cluster)["countFaultDomains"];
    let key = format!("{text}{fault_domains}{}", machine_images(cluster));
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).cloned()) {
        return known;
    }
    let expected = Arc::new(plan(&text, cluster, secrets).unwrap_or_default());
    KNOWN.with_borrow_mut(|known| known.insert(key, Arc::clone(&expected)));
    expected
}

/// The provider config of a Cluster's CloudProfile.
fn provider_config(cluster: &Value) -> &Value {
    &cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]
}

/// The images in the provider config of a Cluster's CloudProfile.
pub(crate) fn machine_images(cluster: &Value) -> &Value {
    &provider_config(cluster)["machineImages"]
}

/// The boot scripts of a Worker in base64, by the names of its class Secrets.
pub(crate) fn boot_scripts<'a>(
    worker: &Value,
    cluster: &Value,
    secrets: impl Iterator<Item = &'a Value>,
) -> BTreeMap<String, String> {
    let script =
        |machine: &MachinePlan| (machine.deployment.secret_name.0.clone(), STANDARD.encode(&machine.user_data.0));
    planned(&worker.to_string(), cluster, secrets, |plan| plan.machines().map(script).collect()).unwrap_or_default()
}

fn plan<'a>(worker: &str, cluster: &Value, secrets: impl Iterator<Item = &'a Value>) -> Option<Expected> {
    let deployment = |machine: &MachinePlan| {
        let expected = &machine.deployment;
        let (class, minimum, maximum) =
            (expected.class_name.0.clone(), expected.minimum.into(), expected.maximum.into());
        let provider_spec = machine.class.provider_spec.clone();
        let key = expected.labels.get(NODE_AGENT_LABEL).cloned();
        (expected.name.0.clone(), TargetDeployment { class, key, provider_spec, minimum, maximum })
    };
    planned(worker, cluster, secrets, |plan| Expected {
        deployments: plan.machines().map(deployment).collect(),
        unplanned: plan.failed_pools().into_iter().map(str::to_owned).collect(),
    })
}

/// Extracts a part of the plan of a Worker.
fn planned<'a, T>(
    worker: &str,
    cluster: &Value,
    secrets: impl Iterator<Item = &'a Value>,
    of_plan: impl Fn(&Plan) -> T,
) -> Option<T> {
    let worker: Worker = decode_lenient(worker).ok()?;
    let cluster: Cluster = decode_lenient(&cluster.to_string()).ok()?;
    let mut contents = Secrets::default();
    for secret in secrets {
        let secret: Secret = serde_json::from_value(secret.clone()).ok()?;
        let (namespace, name) = (secret.metadata.namespace.clone()?, secret.metadata.name.clone()?);
        contents.insert(&namespace, &name, SecretContent::from(secret));
    }
    let provider = Providers::SHIPPED.for_worker_type(&worker.spec.worker_type).ok()?;
    let desired = DesiredState::of_worker(provider, &worker, Some(&cluster), &contents, CloudView::Settled).ok()?;
    Some(of_plan(&desired.plan))
}
