//! The size of a machine, from its class.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use wire::api::gotext::json::decode_value;
use wire::api::gotext::quantity::Quantity;

/// The resources that a machine uses in a cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSize {
    /// The machine type.
    pub machine_type: String,
    /// Number of vCPUs according to the class.
    pub cpus: i64,
    /// The region of the machine.
    pub region: String,
}

impl MachineSize {
    /// The size of machines of a MachineClass; `None` if the class does not have it.
    pub(super) fn of_class(class: &Value) -> Option<Self> {
        let template = class.get("nodeTemplate")?;
        let text = |member: &str| Some(template.get(member)?.as_str()?.to_owned());
        let cpus = decode_value::<Quantity>(template.pointer("/capacity/cpu")?).ok()?.value_rounded_up();
        Some(Self { machine_type: text("instanceType")?, cpus, region: text("region").unwrap_or_default() })
    }
}
