//! The capability `architecture`, and the older fields that it supersedes.

use super::defaults::{ARCHITECTURE, values_of};
use crate::api::gardener::{Capabilities, CapabilityDefinition};

/// The architectures that a profile defines; none for profiles in the old format.
///
/// Where a capability is defined twice, the later definition counts.
#[must_use]
pub fn defined_architectures(definitions: &[CapabilityDefinition]) -> &[String] {
    definitions.iter().rfind(|definition| definition.name == ARCHITECTURE).map_or(&[], |definition| &definition.values)
}

/// The architecture of a machine type: its capability, the only one of the profile, or what the older field says.
#[must_use]
pub fn architecture_of_machine_type<'a>(
    capabilities: &'a Capabilities,
    field: Option<&'a str>,
    definitions: &'a [CapabilityDefinition],
) -> Option<&'a str> {
    let definition = definitions.iter().rfind(|definition| definition.name == ARCHITECTURE);
    match definition.map(|definition| values_of(capabilities, definition)) {
        Some([only]) => Some(only),
        _ => field.filter(|field| !field.is_empty()),
    }
}

/// The architectures of an image version, each once: those that its flavors name, those of the profile where it has no
/// flavors, else what the older field says.
#[must_use]
pub fn architectures_of_version<'a>(
    flavors: &'a [Capabilities],
    field: &'a [String],
    definitions: &'a [CapabilityDefinition],
) -> Vec<&'a str> {
    let named = if flavors.is_empty() {
        once_each(defined_architectures(definitions))
    } else {
        architectures_of_flavors(flavors)
    };
    if named.is_empty() { once_each(field) } else { named }
}

/// The architectures that flavors name, each once.
#[must_use]
pub fn architectures_of_flavors(flavors: &[Capabilities]) -> Vec<&str> {
    once_each(flavors.iter().filter_map(|flavor| flavor.values(ARCHITECTURE)).flatten())
}

fn once_each<'a>(values: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut once: Vec<&str> = Vec::new();
    for value in values {
        if !once.contains(&value.as_str()) {
            once.push(value);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::ranking::tests::{capabilities, definitions};

    #[test]
    fn the_capability_goes_before_the_field() {
        let two = definitions("architecture=amd64,arm64 hyper=a,b");
        let one = definitions("architecture=arm64");
        let of_type = |listed: &str, field: Option<&str>, definitions: &[CapabilityDefinition]| {
            architecture_of_machine_type(&capabilities(listed), field, definitions).map(str::to_owned)
        };
        assert_eq!(of_type("architecture=arm64", Some("amd64"), &two).as_deref(), Some("arm64"));
        assert_eq!(of_type("hyper=a", Some("arm64"), &two).as_deref(), Some("arm64"));
        assert_eq!(of_type("", Some("amd64"), &one).as_deref(), Some("arm64"));
        assert_eq!(of_type("", None, &two), None);
        assert_eq!(of_type("architecture=arm64", None, &[]), None, "without definitions only the field counts");
    }

    #[test]
    fn versions_have_the_architectures_of_their_flavors() {
        let two = definitions("architecture=amd64,arm64");
        let field = ["amd64".to_owned()];
        let flavors = [capabilities("architecture=arm64"), capabilities("architecture=arm64 hyper=a")];
        assert_eq!(architectures_of_version(&flavors, &field, &two), ["arm64"]);
        assert_eq!(architectures_of_version(&[], &field, &two), ["amd64", "arm64"]);
        assert_eq!(architectures_of_version(&[capabilities("hyper=a")], &field, &two), ["amd64"]);
        assert_eq!(architectures_of_version(&[], &field, &[]), ["amd64"]);
    }
}
