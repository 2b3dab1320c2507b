//! The relevant members of a `ShootState` (`core.gardener.cloud/v1beta1`), in which gardenlet saves the state of a
//! shoot in the garden during a control plane migration.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_with::apply;

use crate::api::gotext::json::null_as_default;
use crate::api::kubernetes_kind;

/// Name and type of the entry with the machines.
const MACHINE_STATE: &str = "machine-state";

/// The state of one shoot, with the shoot's name and project namespace. Must be decoded from text.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Deserialize)]
pub struct ShootState {
    /// Name and project namespace.
    pub metadata: ObjectMeta,
    /// The saved state.
    pub spec: ShootStateSpec,
}

kubernetes_kind!(ShootState, "core.gardener.cloud", "v1beta1", "ShootState", "shootstates", NamespaceResourceScope);

/// Relevant members of `ShootState.spec`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ShootStateSpec {
    /// State of Gardener components.
    #[serde(default, deserialize_with = "null_as_default")]
    pub gardener: Vec<GardenerData>,
}

/// State of one Gardener component. It may contain secrets, so `Debug` omits its data.
#[derive(Clone, Deserialize)]
pub struct GardenerData {
    /// Name of the entry.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// Type of the entry.
    #[serde(rename = "type", default, deserialize_with = "null_as_default")]
    pub data_type: String,
    /// The saved document.
    pub data: Option<Box<RawValue>>,
}

impl std::fmt::Debug for GardenerData {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "GardenerData({}, {})", self.name, self.data_type)
    }
}

impl ShootState {
    /// The document with the machines, in the format of `Worker.status.state`.
    #[must_use]
    pub fn machine_state(&self) -> Option<&RawValue> {
        let mut entries = self.spec.gardener.iter();
        let entry = entries.find(|entry| entry.name == MACHINE_STATE && entry.data_type == MACHINE_STATE)?;
        entry.data.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_are_found_by_name_and_type() {
        let state: ShootState = serde_json::from_str(
            r#"{"spec":{"gardener":[
                {"name":"ca","type":"secret","data":{"key":"private"}},
                {"name":"machine-state","type":"other","data":{"state":"no"}},
                {"name":"machine-state","type":"machine-state","data":{"state":"yes"}}]}}"#,
        )
        .unwrap();
        assert_eq!(state.machine_state().unwrap().get(), r#"{"state":"yes"}"#);
        assert!(!format!("{state:?}").contains("private"));
        let empty: ShootState = serde_json::from_str(r#"{"spec":{"gardener":null}}"#).unwrap();
        assert!(empty.machine_state().is_none());
    }
}
