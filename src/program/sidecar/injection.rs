//! Computes the patch that adds the sidecar to a Deployment or VerticalPodAutoscaler. Empty if the sidecar is up to
//! date.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, Patch, PatchOperation, ReplaceOperation};
use serde_json::{Value, json};

use super::container::{Sidecar, volume};
use super::surroundings::Surroundings;

/// The Deployment that gets the sidecar.
pub(super) const DEPLOYMENT: &str = "machine-controller-manager";
/// The VerticalPodAutoscaler that gets its policy.
pub(super) const AUTOSCALER: &str = "machine-controller-manager-vpa";

const CONTAINERS: &Pointer = Pointer::from_static("/spec/template/spec/containers");
const VOLUMES: &Pointer = Pointer::from_static("/spec/template/spec/volumes");
const POLICY: &Pointer = Pointer::from_static("/spec/resourcePolicy");
const CONTAINER_POLICIES: &Pointer = Pointer::from_static("/spec/resourcePolicy/containerPolicies");

/// Whether an object has this name and is not being deleted.
pub(super) fn is_subject(object: &Value, name: &str) -> bool {
    let metadata = &object["metadata"];
    metadata["name"] == name && metadata["deletionTimestamp"].is_null()
}

/// The patch of a Deployment.
pub(crate) fn into_deployment(
    deployment: &Value,
    sidecar: &Sidecar,
    namespace: &str,
    surroundings: Surroundings,
) -> Patch {
    // The API server itself rejects a Deployment without a pod.
    if !deployment.pointer("/spec/template/spec").is_some_and(Value::is_object) {
        return Patch::default();
    }
    let container = Entry {
        required: sidecar.container(namespace, surroundings),
        defaults: json!({"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}),
    };
    let volume =
        volume(surroundings).map(|required| Entry { required, defaults: json!({"projected": {"defaultMode": 0o644}}) });
    let container = container.into_list(deployment, CONTAINERS, "name");
    let volume = volume.and_then(|volume| volume.into_list(deployment, VOLUMES, "name"));
    Patch(container.into_iter().chain(volume).collect())
}

/// The patch of a VerticalPodAutoscaler.
pub(crate) fn into_autoscaler(autoscaler: &Value, sidecar: &Sidecar) -> Patch {
    let required = sidecar.autoscaler_policy();
    let Some(spec) = autoscaler["spec"].as_object() else { return Patch::default() };
    if spec.get("resourcePolicy").is_none_or(Value::is_null) {
        let value = json!({"containerPolicies": [required]});
        return Patch(vec![added(POLICY.to_buf(), value)]);
    }
    let entry = Entry { required, defaults: json!({}) };
    let entry = entry.into_list(autoscaler, CONTAINER_POLICIES, "containerName");
    Patch(entry.into_iter().collect())
}

/// An entry of a list with named entries.
struct Entry {
    required: Value,
    /// Values that an API server adds by default.
    defaults: Value,
}

impl Entry {
    /// The operation that adds the entry to the list at this path, or replaces the one with its name. `None` if it is
    /// up to date.
    fn into_list(self, object: &Value, list: &Pointer, name: &str) -> Option<PatchOperation> {
        let Some(entries) = object.pointer(list.as_str()).and_then(Value::as_array) else {
            return Some(added(list.to_buf(), json!([self.required])));
        };
        match entries.iter().position(|entry| entry[name] == self.required[name]) {
            None => Some(added(list.with_trailing_token("-"), self.required)),
            Some(position) if self.is(&entries[position]) => None,
            Some(position) => {
                let path = list.with_trailing_token(position);
                Some(PatchOperation::Replace(ReplaceOperation { path, value: self.required }))
            }
        }
    }

    fn is(&self, live: &Value) -> bool {
        let mut filled = self.required.clone();
        fill(&mut filled, &self.defaults);
        *live == self.required || *live == filled
    }
}

fn added(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}

fn fill(value: &mut Value, defaults: &Value) {
    match (value, defaults) {
        (Value::Object(members), Value::Object(defaults)) => {
            for (name, default) in defaults {
                fill(members.entry(name.clone()).or_insert(Value::Null), default);
            }
        }
        (value, default) if value.is_null() => *value = default.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: &str = "shoot--p--s";
    const ORDINARY: Surroundings = Surroundings { self_hosted: false, workload_identity: false };

    fn azure() -> Sidecar {
        Sidecar { provider_type: "azure".to_owned(), image: "mcm-azure:v1".to_owned(), arguments: &["--of-azure=1"] }
    }

    /// A Deployment as written by gardenlet, with additional containers.
    fn deployment(more: &[Value]) -> Value {
        let mut containers = vec![json!({"name": "machine-controller-manager", "image": "mcm:v1"})];
        containers.extend_from_slice(more);
        let pod =
            json!({"containers": containers, "volumes": [{"name": "kubeconfig", "projected": {"defaultMode": 420}}]});
        json!({"metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE}, "spec": {"template": {"spec": pod}}})
    }

    fn values(patch: &Patch) -> Vec<(&str, &Value)> {
        let step = |step| match step {
            &PatchOperation::Add(AddOperation { ref path, ref value })
            | &PatchOperation::Replace(ReplaceOperation { ref path, ref value }) => (path.as_str(), value),
            other => panic!("{other}"),
        };
        patch.iter().map(step).collect()
    }

    fn replaced(path: &str, value: Value) -> Patch {
        let path = PointerBuf::parse(path).unwrap();
        Patch(vec![PatchOperation::Replace(ReplaceOperation { path, value })])
    }

    #[test]
    fn where_the_nodes_are_decides_over_the_target_and_its_mount() {
        for (self_hosted, namespace, target, mounts) in [
            (false, NAMESPACE, "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig", 1),
            (false, "kube-system", "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig", 1),
            (true, "kube-system", "", 0),
            (true, NAMESPACE, "none", 0),
        ] {
            let container = azure().container(namespace, Surroundings { self_hosted, ..ORDINARY });
            let arguments: Vec<&str> =
                container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
            assert!(arguments.contains(&format!("--target-kubeconfig={target}").as_str()), "{arguments:?}");
            assert!(arguments.contains(&format!("--namespace={namespace}").as_str()), "{arguments:?}");
            assert_eq!(container["volumeMounts"].as_array().map_or(0, Vec::len), mounts, "{self_hosted} {namespace}");
        }
    }

    #[test]
    fn a_workload_identity_is_mounted_from_the_credentials() {
        let volume = json!({"name": "workload-identity", "projected": {"sources": [
            {"secret": {"name": "cloudprovider", "items": [{"key": "token", "path": "token"}]}},
        ]}});
        let mount =
            json!({"name": "workload-identity", "mountPath": "/var/run/secrets/gardener.cloud/workload-identity"});
        for (self_hosted, position) in [(false, 1), (true, 0)] {
            let surroundings = Surroundings { self_hosted, workload_identity: true };
            let patch = into_deployment(&deployment(&[]), &azure(), NAMESPACE, surroundings);
            let added = values(&patch);
            assert_eq!(added[0].1["volumeMounts"][position], mount);
            assert_eq!(added[1], ("/spec/template/spec/volumes/-", &volume));
        }
        let mut without_volumes = deployment(&[]);
        without_volumes["spec"]["template"]["spec"]["volumes"] = Value::Null;
        let surroundings = Surroundings { workload_identity: true, ..ORDINARY };
        let patch = into_deployment(&without_volumes, &azure(), NAMESPACE, surroundings);
        assert_eq!(values(&patch)[1], ("/spec/template/spec/volumes", &json!([volume])));
    }

    #[test]
    fn replaces_differing_entries_and_keeps_others() {
        let surroundings = Surroundings { workload_identity: true, ..ORDINARY };
        let injected = azure().container(NAMESPACE, surroundings);
        let mut stored = injected.clone();
        stored["terminationMessagePath"] = json!("/dev/termination-log");
        stored["terminationMessagePolicy"] = json!("File");
        let mut volume = volume(surroundings).unwrap();
        volume["projected"]["defaultMode"] = json!(420);
        for container in [&injected, &stored] {
            let mut deployment = deployment(&[container.clone(), json!({"name": "another"})]);
            deployment["spec"]["template"]["spec"]["volumes"].as_array_mut().unwrap().push(volume.clone());
            assert_eq!(into_deployment(&deployment, &azure(), NAMESPACE, surroundings), Patch::default());
        }
        for (member, value) in [
            ("image", json!("mcm-azure:v0")),
            ("env", json!([{"name": "A", "value": "B"}])),
            ("terminationMessagePolicy", json!("FallbackToLogsOnError")),
            ("readinessProbe", json!({})),
            ("args", json!([])),
        ] {
            let mut other = stored.clone();
            other[member] = value;
            let deployment = deployment(&[other, json!({"name": "another"})]);
            let patch = into_deployment(&deployment, &azure(), NAMESPACE, ORDINARY);
            let required = azure().container(NAMESPACE, ORDINARY);
            assert_eq!(patch, replaced("/spec/template/spec/containers/1", required), "{member}");
        }
    }

    #[test]
    fn only_the_object_of_that_name_that_stays_is_changed() {
        assert!(is_subject(&deployment(&[]), DEPLOYMENT));
        assert!(!is_subject(&json!({"metadata": {"name": "kube-apiserver"}}), DEPLOYMENT));
        let deleted = json!({"metadata": {"name": DEPLOYMENT, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(!is_subject(&deleted, DEPLOYMENT));
        for hostile in [json!(null), json!([]), json!("x"), json!({"metadata": []})] {
            assert!(!is_subject(&hostile, DEPLOYMENT), "{hostile}");
            assert_eq!(into_deployment(&hostile, &azure(), NAMESPACE, ORDINARY), Patch::default(), "{hostile}");
            assert_eq!(into_autoscaler(&hostile, &azure()), Patch::default(), "{hostile}");
        }
    }

    #[test]
    fn the_autoscaler_gets_a_policy_beside_those_of_gardenlet() {
        let policy =
            json!({"containerName": "machine-controller-manager-provider-azure", "controlledValues": "RequestsOnly"});
        let others = json!([{"containerName": "machine-controller-manager"}, {"containerName": "*", "mode": "Off"}]);
        let with = |policies: Value| json!({"spec": {"resourcePolicy": {"containerPolicies": policies}}});
        let list = "/spec/resourcePolicy/containerPolicies";
        let add = |path: &str, value: Value| Patch(vec![added(PointerBuf::parse(path).unwrap(), value)]);
        assert_eq!(into_autoscaler(&with(others), &azure()), add(&format!("{list}/-"), policy.clone()));
        assert_eq!(into_autoscaler(&with(Value::Null), &azure()), add(list, json!([policy])));
        let whole = json!({"containerPolicies": [policy]});
        assert_eq!(into_autoscaler(&json!({"spec": {}}), &azure()), add("/spec/resourcePolicy", whole));
        assert_eq!(into_autoscaler(&with(json!([policy])), &azure()), Patch::default());
        let mut other = policy.clone();
        other["mode"] = json!("Off");
        assert_eq!(into_autoscaler(&with(json!([other])), &azure()), replaced(&format!("{list}/0"), policy));
    }
}
