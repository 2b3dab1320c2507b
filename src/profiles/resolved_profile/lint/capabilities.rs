//! Defined capabilities that do not have the expected effect.

use std::collections::BTreeSet;

use super::Lint;
use super::finding::Rule;
use wire::api::bounded_text::enumerated;
use wire::api::gardener::CapabilityDefinition;
use wire::capabilities::ARCHITECTURE;

impl Lint<'_> {
    pub(super) fn capabilities(&mut self) {
        for (index, definition) in self.profile.spec.machine_capabilities.iter().enumerate() {
            let path = format!("spec.machineCapabilities[{index}]");
            self.without_effect(definition, &path);
            if is_true_or_false(definition) {
                let reason = "true and false say whether machines can do something, not what: a machine type that lists both \
                              gets the image for the first value, and a third value has no place later.";
                let advice = "Name what there is, such as secureBoot: [signed, unsigned].";
                self.find(Rule::TrueOrFalse, path, &definition.name, reason, advice);
            }
        }
    }

    /// Reports a capability that looks like one of the provider's under an unknown name.
    fn without_effect(&mut self, definition: &CapabilityDefinition, path: &str) {
        let declared = &self.profile.spec.machine_capabilities;
        let effects =
            self.profile.format.old_format_definitions().into_iter().filter(|effect| effect.name != ARCHITECTURE);
        for effect in effects.filter(|effect| !declared.iter().any(|known| known.name == effect.name)) {
            let is_former_name = self.profile.format.former_names(&effect.name).contains(&definition.name.as_str());
            if !is_former_name && !has_same_values(definition, &effect) {
                continue;
            }
            let reason = format!(
                "The provider does not know {}: what it turns on at machines is decided by {} alone. As long as the profile \
                 defines no {}, it stays off for every machine type.",
                definition.name, effect.name, effect.name
            );
            let advice = format!("Call it {}, with the values {}.", effect.name, enumerated(&effect.values));
            self.find(Rule::WithoutEffect, path, &definition.name, reason, advice);
        }
    }
}

/// Whether two capabilities have the same values in any order.
fn has_same_values(definition: &CapabilityDefinition, other: &CapabilityDefinition) -> bool {
    let [values, others] = [definition, other].map(|known| known.values.iter().collect::<BTreeSet<_>>());
    values == others
}

fn is_true_or_false(definition: &CapabilityDefinition) -> bool {
    let words = ["true", "false", "yes", "no"];
    !definition.values.is_empty()
        && definition.values.iter().all(|value| words.contains(&value.to_lowercase().as_str()))
}
