//! What a Worker wants, by the pure decisions of the program: the cause that a change has to have.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gardener_extension_worker::api::gardener::{Cluster, Worker};
use gardener_extension_worker::api::gotext::json::decode_lenient;
use gardener_extension_worker::api::secret::{SecretContent, Secrets};
use gardener_extension_worker::provider::{MachinePlan, Providers};
use gardener_extension_worker::worker::desired::{CloudView, DesiredState};
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

/// A machine deployment as it is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WantedDeployment {
    pub(crate) class: String,
    pub(crate) provider_spec: Value,
    pub(crate) minimum: i64,
    pub(crate) maximum: i64,
}

/// The machine deployments that are wanted, by name.
pub(crate) type Wanted = BTreeMap<String, WantedDeployment>;

thread_local! {
    /// Lives repeat themselves, and plans take long.
    static KNOWN: RefCell<HashMap<String, Arc<Wanted>>> = RefCell::default();
}

/// What a version of a Worker wants beside these objects.
pub(crate) fn wanted<'a>(worker: &Value, cluster: &Value, secrets: impl Iterator<Item = &'a Value>) -> Arc<Wanted> {
    let metadata =
        serde_json::json!({"name": worker["metadata"]["name"], "namespace": worker["metadata"]["namespace"]});
    let text = format!(
        r#"{{"apiVersion":{},"kind":"Worker","metadata":{metadata},"spec":{},"status":{{"providerStatus":{}}}}}"#,
        worker["apiVersion"], worker["spec"], worker["status"]["providerStatus"]
    );
    // The only part of a Cluster that changes in lives and counts here.
    let fault_domains = &cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["countFaultDomains"];
    let key = format!("{text}{fault_domains}");
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).cloned()) {
        return known;
    }
    let wanted = Arc::new(plan(&text, cluster, secrets).unwrap_or_default());
    KNOWN.with_borrow_mut(|known| known.insert(key, Arc::clone(&wanted)));
    wanted
}

/// The boot scripts that a version of a Worker wants, in base64, by the names of the Secrets of its classes.
pub(crate) fn boot_scripts<'a>(
    worker: &Value,
    cluster: &Value,
    secrets: impl Iterator<Item = &'a Value>,
) -> BTreeMap<String, String> {
    let scripts = planned(&worker.to_string(), cluster, secrets, |machine| {
        (machine.deployment.secret_name.0.clone(), STANDARD.encode(&machine.user_data.0))
    });
    scripts.unwrap_or_default()
}

fn plan<'a>(worker: &str, cluster: &Value, secrets: impl Iterator<Item = &'a Value>) -> Option<Wanted> {
    planned(worker, cluster, secrets, |machine| {
        let wanted = &machine.deployment;
        let (class, minimum, maximum) = (wanted.class_name.0.clone(), wanted.minimum.into(), wanted.maximum.into());
        let provider_spec = machine.class.provider_spec.clone();
        (wanted.name.0.clone(), WantedDeployment { class, provider_spec, minimum, maximum })
    })
}

/// Something of each machine deployment that is wanted.
fn planned<'a, T>(
    worker: &str,
    cluster: &Value,
    secrets: impl Iterator<Item = &'a Value>,
    of_machine: impl Fn(&MachinePlan) -> (String, T),
) -> Option<BTreeMap<String, T>> {
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
    Some(desired.plan.machines().map(of_machine).collect())
}
