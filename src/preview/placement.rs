//! The objects of one pool in one zone: what machine-controller-manager and new nodes get to see.

use serde_json::{Value, json};

use super::machine_size::MachineSize;
use crate::api::gardener::MachineDeploymentStatus;
use crate::pool::hash::HashItems;
use crate::provider::UserData;
use crate::worker::difference::is_same;
use crate::worker::machine_objects::{LiveDeployment, MachineObjects};

/// The objects of one pool in one zone.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Name of the pool.
    pub(crate) pool: String,
    /// The zone, if there is one and it is known.
    pub(crate) zone: Option<String>,
    /// The MachineDeployment.
    pub(crate) deployment: Value,
    pub(crate) class_name: String,
    /// The MachineClass; absent when a live one is gone.
    pub(crate) class: Option<Value>,
    /// The boot script; absent when a live one is gone.
    pub(crate) user_data: Option<UserData>,
    /// Bounds and priority for the cluster-autoscaler, where they are known.
    pub(crate) bounds: Option<Bounds>,
    /// What the class name is made of, where it is known.
    pub(crate) hash_items: Option<HashItems>,
    /// Whether the Shoot is hibernated; unknown of a live deployment.
    pub(crate) is_hibernated: bool,
}

/// What `status.machineDeployments` says of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Fewest machines.
    pub(crate) minimum: i32,
    /// Most machines.
    pub(crate) maximum: i32,
    /// Priority for the priority expander.
    pub(crate) priority: Option<i32>,
}

impl Placement {
    /// Wanted machines.
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

    /// What a machine takes, as far as its class tells.
    pub(super) fn machine(&self) -> Option<MachineSize> {
        MachineSize::of_class(self.class.as_ref()?)
    }

    /// Whether a machine made now would be like one made then.
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

    /// Whether the parts of the class agree that no machine is made from.
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

/// Whether machine-controller-manager leaves a deployment document alone.
pub(super) fn is_paused(deployment: &Value) -> bool {
    deployment.pointer("/spec/paused") == Some(&json!(true))
}
