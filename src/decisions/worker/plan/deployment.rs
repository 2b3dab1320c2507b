//! Pure: the target MachineDeployment, from the plan and the live object (docs/contract.md).
//!
//! machine-controller-manager rolls nodes when the labels or annotations of the template or the name of the class
//! change. So nothing is added to the template, and its annotations are copied from the live object.

use serde_json::{Value, json};

use crate::provider::TargetDeployment;
use crate::worker::machines::machine_objects::{LiveDeployment, POOL_LABEL, document_of};
use crate::worker::plan::difference::is_same;
use wire::api::machine::{MachineDeployment, MachineSpec};

/// Inputs of the replica rules in addition to the deployment itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaRules {
    /// The shoot should be hibernated.
    pub hibernated: bool,
    /// The cluster-autoscaler controls replicas within the bounds.
    pub autoscaler_used: bool,
    /// The shoot wakes up: no live or restored deployment has replicas, or there is none.
    pub waking: bool,
}

/// The target document. Other fields keep their live value, and equivalent values keep their live notation.
#[must_use]
pub fn target_document(
    worker_name: &str,
    namespace: &str,
    target: &TargetDeployment,
    live: Option<&LiveDeployment>,
    rules: ReplicaRules,
) -> Value {
    let mut document = live.map_or_else(
        || document_of::<MachineDeployment>(json!({"metadata": {"name": target.name, "namespace": namespace}})),
        |live| live.document.clone(),
    );
    set(&mut document, &["metadata", "labels", POOL_LABEL], json!(target.pool_name));
    for (annotation, value) in &target.cluster_autoscaler_annotations {
        let path = ["metadata", "annotations", annotation.as_str()];
        if value.is_empty() {
            remove(&mut document, &path);
        } else {
            set(&mut document, &path, json!(value));
        }
    }
    let live_replicas = live.map(|live| live.object.spec.replicas);
    let replicas = target_replicas(target, live_replicas, rules);
    if live_replicas != Some(replicas) {
        set(&mut document, &["spec", "replicas"], json!(replicas));
    }
    set(&mut document, &["spec", "revisionHistoryLimit"], json!(0));
    set(&mut document, &["spec", "minReadySeconds"], json!(500));
    set(&mut document, &["spec", "strategy"], json!(target.strategy));
    set(&mut document, &["spec", "selector"], json!({"matchLabels": {"name": target.name}}));
    match target.auto_preserve_failed_machine_max {
        None => {}
        Some(0) => remove(&mut document, &["spec", "autoPreserveFailedMachineMax"]),
        Some(maximum) => set(&mut document, &["spec", "autoPreserveFailedMachineMax"], json!(maximum)),
    }
    set(&mut document, &["spec", "template"], template(worker_name, target, live));
    document
}

/// The first rule that matches applies. `live` is `None` for a new deployment, and the stored number for a restored
/// one.
#[must_use]
pub fn target_replicas(target: &TargetDeployment, live: Option<i32>, rules: ReplicaRules) -> i32 {
    match live {
        _ if rules.hibernated => 0,
        Some(replicas) if rules.autoscaler_used && !rules.waking => {
            // Not `clamp`, which panics if the minimum is greater than the maximum.
            if replicas < target.minimum { target.minimum } else { replicas.min(target.maximum) }
        }
        _ => target.minimum,
    }
}

fn template(worker_name: &str, target: &TargetDeployment, live: Option<&LiveDeployment>) -> Value {
    let mut labels = json!({"name": target.name});
    if target.strategy.in_place_update.is_some() {
        labels["worker.gardener.cloud/name"] = json!(worker_name);
    }
    let annotations = live.map(|live| &live.object.spec.template.metadata.annotations).filter(|map| !map.is_empty());
    let mut metadata = json!({ "labels": labels });
    if let Some(annotations) = annotations {
        metadata["annotations"] = json!(annotations);
    }
    json!({"metadata": metadata, "spec": machine_spec(target)})
}

fn machine_spec(target: &TargetDeployment) -> MachineSpec {
    use wire::api::machine::{ClassReference, LabelsAndAnnotations, NodeTemplateOfMachine, NodeTemplateTaints};
    MachineSpec {
        class: ClassReference { api_group: None, kind: "MachineClass".to_owned(), name: target.class_name.0.clone() },
        provider_id: None,
        node_template: NodeTemplateOfMachine {
            metadata: LabelsAndAnnotations { labels: target.labels.clone(), annotations: target.annotations.clone() },
            spec: NodeTemplateTaints { taints: target.taints.clone() },
        },
        settings: target.machine_configuration.clone(),
    }
}

/// Sets a field unless its value is equivalent.
fn set(document: &mut Value, path: &[&str], value: Value) {
    let mut location = document;
    for key in path {
        if !location.is_object() {
            *location = json!({});
        }
        location = &mut location[*key];
    }
    if !is_same(location, &value) || location.is_null() {
        *location = value;
    }
}

fn remove(document: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut location = document;
    for key in parents {
        let Some(next) = location.get_mut(*key) else { return };
        location = next;
    }
    if let Value::Object(members) = location {
        members.remove(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::test_support::target_deployment;

    #[test]
    fn keeps_autoscaler_replicas_within_bounds() {
        let used = ReplicaRules { autoscaler_used: true, ..ReplicaRules::default() };
        for (live, rules, expected) in [
            (None, used, 2),
            (Some(4), used, 4),
            (Some(1), used, 2),
            (Some(9), used, 5),
            (Some(4), ReplicaRules::default(), 2),
            (Some(0), ReplicaRules { waking: true, ..used }, 2),
            (Some(4), ReplicaRules { hibernated: true, ..used }, 0),
        ] {
            assert_eq!(target_replicas(&target_deployment(), live, rules), expected, "{live:?} {rules:?}");
        }
    }

    #[test]
    fn keeps_template_annotations_and_unknown_fields() {
        let rules = ReplicaRules { autoscaler_used: true, ..ReplicaRules::default() };
        let created = target_document("w", "ns", &target_deployment(), None, rules);
        let mut live = created.clone();
        live["spec"]["template"]["metadata"]["annotations"] = json!({"restarted": "yes"});
        live["spec"]["paused"] = json!(true);
        live["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["creationTimestamp"] = Value::Null;
        let again = target_document(
            "w",
            "ns",
            &target_deployment(),
            Some(&LiveDeployment::read_without_codes(live.clone()).unwrap()),
            rules,
        );
        assert_eq!(again, live, "nothing that means the same is written again");
    }

    #[test]
    fn reverts_external_changes() {
        let rules = ReplicaRules { autoscaler_used: true, ..ReplicaRules::default() };
        let target = TargetDeployment { auto_preserve_failed_machine_max: Some(0), ..target_deployment() };
        let mut created = target_document("w", "ns", &target, None, rules);
        assert_eq!(created["spec"]["replicas"], 2);
        created["metadata"]["annotations"] = json!({"foreign": "stays"});
        let mut changed = created.clone();
        changed["metadata"]["labels"][POOL_LABEL] = json!("another");
        changed["metadata"]["annotations"]["autoscaler.gardener.cloud/scale-down-unneeded-time"] = json!("1h");
        changed["spec"]["autoPreserveFailedMachineMax"] = json!(3);
        changed["spec"]["replicas"] = json!(9);
        changed["spec"]["minReadySeconds"] = json!(1);
        changed["spec"]["strategy"] = json!({"type": "Recreate"});
        changed["spec"]["selector"] = json!({"matchLabels": {"name": "another"}});
        changed["spec"]["template"]["spec"]["class"]["name"] = json!("another");
        created["spec"]["replicas"] = json!(target.maximum);
        let live = LiveDeployment::read_without_codes(changed).unwrap();
        assert_eq!(target_document("w", "ns", &target, Some(&live), rules), created);
    }
}
