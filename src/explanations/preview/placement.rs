//! The objects of one pool in one zone, as machine-controller-manager and new nodes read them.

use serde_json::{Value, json};

use super::machine_size::MachineSize;
use decisions::pool::hash::HashItems;
use decisions::provider::UserData;
use decisions::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use decisions::worker::plan::difference::is_same;
use wire::api::gardener::MachineDeploymentStatus;

/// The objects of one pool in one zone.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    pub(crate) pool: String,
    /// The zone, if the pool has zones and it is known.
    pub(crate) zone: Option<String>,
    pub(crate) deployment: Value,
    pub(crate) class_name: String,
    /// The MachineClass; absent if it does not exist in the cluster.
    pub(crate) class: Option<Value>,
    /// The user data of nodes; absent if it is not in the cluster.
    pub(crate) user_data: Option<UserData>,
    /// Bounds and priority for cluster-autoscaler, if known.
    pub(crate) bounds: Option<Bounds>,
    /// The hash inputs of the class name, if known.
    pub(crate) hash_items: Option<HashItems>,
    /// Whether the Shoot is hibernated; unknown of a live deployment.
    pub(crate) is_hibernated: bool,
}

/// The entry of a deployment in `status.machineDeployments`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(crate) minimum: i32,
    pub(crate) maximum: i32,
    /// For the priority expander of cluster-autoscaler.
    pub(crate) priority: Option<i32>,
}

impl Placement {
    /// Target number of machines.
    pub(super) fn replicas(&self) -> i64 {
        self.deployment.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn bounds_differ(&self, other: &Self) -> bool {
        let numbers = |placement: &Self| placement.bounds.map(|bounds| (bounds.minimum, bounds.maximum));
        matches!((numbers(self), numbers(other)), (Some(left), Some(right)) if left != right)
    }

    pub(super) fn priority_differs(&self, other: &Self) -> bool {
        matches!((self.bounds, other.bounds), (Some(left), Some(right)) if left.priority != right.priority)
    }

    /// The size of a machine, as far as its class has it.
    pub(super) fn machine(&self) -> Option<MachineSize> {
        MachineSize::of_class(self.class.as_ref()?)
    }

    /// Whether new machines of both classes are alike.
    pub(super) fn makes_same_nodes(&self, other: &Self) -> bool {
        let (Some(left), Some(right)) = (&self.class, &other.class) else { return true };
        let same_script = match (&self.user_data, &other.user_data) {
            (Some(left), Some(right)) => left == right,
            _ => true,
        };
        same_script
            && ["provider", "providerSpec", "credentialsSecretRef"].iter().all(|member| {
                is_same(left.get(member).unwrap_or(&Value::Null), right.get(member).unwrap_or(&Value::Null))
            })
    }

    /// Whether both classes agree in the fields that do not affect machines.
    pub(super) fn has_same_class_metadata(&self, other: &Self) -> bool {
        let (Some(left), Some(right)) = (&self.class, &other.class) else { return true };
        ["/nodeTemplate", "/metadata/labels"].iter().all(|member| {
            is_same(left.pointer(member).unwrap_or(&Value::Null), right.pointer(member).unwrap_or(&Value::Null))
        })
    }
}

/// A live deployment with its class, as a placement.
pub(super) fn live_placement(
    name: &str,
    live: &LiveDeployment,
    objects: &MachineObjects,
    published: &[MachineDeploymentStatus],
) -> Placement {
    let class_name = live.object.spec.template.spec.class.name.clone();
    let script =
        objects.class_secrets.get(&class_name).and_then(|secret| secret.whole.as_ref()?.data.as_ref()?.get("userData"));
    Placement {
        pool: live.pool().unwrap_or_default().to_owned(),
        zone: None,
        deployment: live.document.clone(),
        class: objects.classes.get(&class_name).and_then(|class| class.whole.as_deref().cloned()),
        user_data: script.map(|script| UserData(script.0.clone())),
        class_name,
        bounds: published.iter().find(|entry| entry.name == name).map(|entry| Bounds {
            minimum: entry.minimum,
            maximum: entry.maximum,
            priority: entry.priority,
        }),
        hash_items: None,
        is_hibernated: false,
    }
}

/// Whether machine-controller-manager ignores a deployment document.
pub(super) fn is_paused(deployment: &Value) -> bool {
    deployment.pointer("/spec/paused") == Some(&json!(true))
}
