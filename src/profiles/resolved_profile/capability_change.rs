//! How the definitions of capabilities (`spec.machineCapabilities`) of two CloudProfiles differ. The order of capabilities and
//! of values is preference, so a new order is a change.

use serde::Serialize;

use wire::api::gardener::CapabilityDefinition;

/// A capability that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapabilityChange {
    /// Name of the capability.
    pub capability: String,
    /// What differs.
    pub change: CapabilityDifference,
    /// Its values in OLD; empty if OLD does not define it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Its values in NEW; empty if NEW does not define it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// What differs in a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CapabilityDifference {
    /// Only NEW defines it.
    Added,
    /// Only OLD defines it.
    Removed,
    /// NEW has more values.
    ValuesAdded,
    /// NEW has fewer values.
    ValuesRemoved,
    /// NEW has other values: some are added and some removed.
    ValuesReplaced,
    /// The same values in another order of preference.
    ValuesReordered,
    /// The same values, but another position among the capabilities of both sides.
    Moved,
}

impl CapabilityDifference {
    /// Text for tables.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::ValuesAdded => "values added",
            Self::ValuesRemoved => "values removed",
            Self::ValuesReplaced => "values added and removed",
            Self::ValuesReordered => "values reordered",
            Self::Moved => "another position",
        }
    }

    /// Whether a capability or a value is no longer defined, so that Gardener rejects entries that list it.
    #[must_use]
    pub fn takes_something(self) -> bool {
        matches!(self, Self::Removed | Self::ValuesRemoved | Self::ValuesReplaced)
    }
}

/// The capabilities that differ: those of OLD in its order, then new ones.
#[must_use]
pub fn capability_changes(old: &[CapabilityDefinition], new: &[CapabilityDefinition]) -> Vec<CapabilityChange> {
    let find = |definitions: &[CapabilityDefinition], name: &str| {
        definitions.iter().find(|known| known.name == name).map(|known| known.values.clone())
    };
    let is_new = |definition: &&CapabilityDefinition| find(old, &definition.name).is_none();
    let names = old.iter().chain(new.iter().filter(is_new)).map(|definition| definition.name.as_str());
    let change = |name: &str| {
        let before = find(old, name);
        let after = find(new, name);
        let is_moved = position(old, new, name) != position(new, old, name);
        let change = difference(before.as_deref(), after.as_deref(), is_moved)?;
        let [before, after] = [before, after].map(Option::unwrap_or_default);
        Some(CapabilityChange { capability: name.to_owned(), change, before, after })
    };
    names.filter_map(change).collect()
}

/// The position of a capability among those that the other side has, too.
fn position(definitions: &[CapabilityDefinition], other: &[CapabilityDefinition], name: &str) -> Option<usize> {
    let is_common = |definition: &&CapabilityDefinition| other.iter().any(|known| known.name == definition.name);
    definitions.iter().filter(is_common).position(|definition| definition.name == name)
}

fn difference(before: Option<&[String]>, after: Option<&[String]>, is_moved: bool) -> Option<CapabilityDifference> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(_)) => return Some(CapabilityDifference::Added),
        (Some(_), None) => return Some(CapabilityDifference::Removed),
        (None, None) => return None,
    };
    let is_added = after.iter().any(|value| !before.contains(value));
    let is_removed = before.iter().any(|value| !after.contains(value));
    match (is_added, is_removed) {
        (true, true) => Some(CapabilityDifference::ValuesReplaced),
        (true, false) => Some(CapabilityDifference::ValuesAdded),
        (false, true) => Some(CapabilityDifference::ValuesRemoved),
        (false, false) if before != after => Some(CapabilityDifference::ValuesReordered),
        (false, false) => is_moved.then_some(CapabilityDifference::Moved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(text: &str) -> Vec<CapabilityDefinition> {
        let definition = |part: &str| {
            let (name, values) = part.split_once('=').unwrap();
            let values = values.split(',').map(str::to_owned).collect();
            CapabilityDefinition { name: name.to_owned(), values }
        };
        text.split_whitespace().map(definition).collect()
    }

    #[test]
    fn reports_every_kind_of_change() {
        for (old, new, expected) in [
            ("a=1,2 b=3", "a=1,2 b=3", ""),
            ("a=1,2", "a=1,2 b=3", "b added"),
            ("a=1,2 b=3", "a=1,2", "b removed"),
            ("a=1,2", "a=1,2,3", "a values added"),
            ("a=1,2", "a=2", "a values removed"),
            ("a=1,2", "a=2,3", "a values added and removed"),
            ("a=1,2", "a=2,1", "a values reordered"),
            ("a=1 b=2", "b=2 a=1", "a another position, b another position"),
            ("a=1 b=2", "c=3 a=1 b=2", "c added"),
            ("a=1 b=2 c=3", "a=1 c=3", "b removed"),
        ] {
            let changes = capability_changes(&definitions(old), &definitions(new));
            let texts: Vec<String> =
                changes.iter().map(|change| format!("{} {}", change.capability, change.change.text())).collect();
            assert_eq!(texts.join(", "), expected, "{old} -> {new}");
        }
    }
}
