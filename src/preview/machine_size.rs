//! What a machine takes of a cloud, by its class.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::gotext::json::decode_value;
use crate::api::gotext::quantity::Quantity;

/// What a machine takes of a cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSize {
    /// Its type.
    pub machine_type: String,
    /// Processors, as its class says.
    pub cpus: i64,
    /// Where it is.
    pub region: String,
}

impl MachineSize {
    /// The size of machines of a MachineClass, as far as it tells.
    pub(super) fn of_class(class: &Value) -> Option<Self> {
        let template = class.get("nodeTemplate")?;
        let text = |member: &str| Some(template.get(member)?.as_str()?.to_owned());
        let cpus = decode_value::<Quantity>(template.pointer("/capacity/cpu")?).ok()?.value_rounded_up();
        Some(Self { machine_type: text("instanceType")?, cpus, region: text("region").unwrap_or_default() })
    }
}
