//! Machine capabilities (GEP-33) in a CloudProfile.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::api::gotext::json::null_as_default;

/// An entry of `CloudProfile.spec.machineCapabilities`. Entries and values are in order of preference.
#[apply(_ => #[serde(default, deserialize_with = "null_as_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityDefinition {
    /// Name of the capability, for example `architecture`.
    pub name: String,
    /// All values of the capability, in order of preference.
    pub values: Vec<String>,
}

/// Capability values of a machine type or image flavor, by name.
///
/// A missing name means "every value of the definition", an empty list means "none" (docs/contract.md#capabilities), so
/// both survive a round trip. A `null` map or list decodes to an empty one, as in Go.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Capabilities(pub BTreeMap<String, Vec<String>>);

impl Capabilities {
    /// The values listed for a capability; `None` if the name is missing, which differs from an empty list.
    pub fn values(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Whether no capability is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let listed: Listed = null_as_default(deserializer)?;
        Ok(Self(listed.0))
    }
}

/// A map that is not `null`. A CloudProfile has thousands of them, so each is decoded without an intermediate map.
#[derive(Default)]
struct Listed(BTreeMap<String, Vec<String>>);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Listed;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed, A::Error> {
                let mut listed = BTreeMap::new();
                while let Some((name, values)) = map.next_entry::<String, Option<Vec<String>>>()? {
                    listed.insert(name, values.unwrap_or_default());
                }
                Ok(Listed(listed))
            }
        }

        deserializer.deserialize_map(Names)
    }
}

impl<Name: Into<String>, Value: Into<String>, Values: IntoIterator<Item = Value>> FromIterator<(Name, Values)>
    for Capabilities
{
    fn from_iter<Entries: IntoIterator<Item = (Name, Values)>>(entries: Entries) -> Self {
        Self(
            entries
                .into_iter()
                .map(|(name, values)| (name.into(), values.into_iter().map(Into::into).collect()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_and_a_missing_name_stay_different() {
        let text = r#"{"architecture":["amd64"],"hypervisor":[]}"#;
        let read: Capabilities = serde_json::from_str(text).unwrap();
        assert_eq!(read.values("hypervisor"), Some(&[][..]));
        assert_eq!(read.values("disk"), None);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn null_is_read_as_empty() {
        let flavors: Vec<Capabilities> = serde_json::from_str(r#"[null,{"a":null}]"#).unwrap();
        assert!(flavors[0].is_empty());
        assert_eq!(flavors[1].values("a"), Some(&[][..]));
    }
}
