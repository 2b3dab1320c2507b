//! Records calls for scale sets, in order. Omits polls of operations and the read that completes a PUT, because an SDK
//! makes them on its own.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    List,
    Get,
    Put,
    Delete,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub verb: Verb,
    pub resource_group: String,
    /// Empty for a list. For a PUT, the name that the scale set got, see [`super::Naming`].
    pub name: String,
    /// Without `api-version`.
    pub query: BTreeMap<String, String>,
    /// Null except for a PUT.
    pub body: Value,
}

impl Call {
    /// In the form of `azureCalls` in recorded flows: `["Get", group, name, "expand=userData"]`.
    pub fn in_flows(&self) -> Value {
        let query = || self.query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let query = || query().trim_start_matches('$').to_owned();
        match self.verb {
            Verb::List => json!(["List", self.resource_group]),
            Verb::Get => json!(["Get", self.resource_group, self.name, query()]),
            Verb::Put => json!(["CreateOrUpdate", self.resource_group, self.name, self.body.to_string()]),
            Verb::Delete => json!(["Delete", self.resource_group, self.name, query()]),
        }
    }

    /// In the form of `azureCalls` in the parity cases: `{"call": "get", "name": …, "resourceGroup": …}`.
    pub fn in_cases(&self) -> Value {
        let mut call = match self.verb {
            Verb::List => return json!({"call": "list", "resourceGroup": self.resource_group}),
            Verb::Get => json!({"call": "get"}),
            Verb::Delete => {
                json!({"call": "delete", "force": self.query.get("forceDeletion").is_some_and(|force| force == "true")})
            }
            Verb::Put => json!({
                "call": "createOrUpdate",
                "location": self.body["location"],
                "platformFaultDomainCount": self.body["properties"]["platformFaultDomainCount"],
                "singlePlacementGroup": self.body["properties"]["singlePlacementGroup"],
                "tags": self.body["tags"],
            }),
        };
        call["name"] = self.name.clone().into();
        call["resourceGroup"] = self.resource_group.clone().into();
        call
    }
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_flows().serialize(serializer)
    }
}
