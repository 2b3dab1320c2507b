//! Filters that select a part of the matrix.

use super::selectable::{ResolvedProfile, SelectableFlavor, SelectableVersion};
use decisions::provider::explanation::ImageName;
use wire::api::gardener::CapabilityDefinition;
use wire::capabilities::with_defaults;

/// Filters; an empty list selects everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of machine types; `*` matches any text.
    pub machine_types: Vec<String>,
    /// `image` or `image@version`; `*` matches any text.
    pub images: Vec<String>,
    /// CPU architectures.
    pub architectures: Vec<String>,
    /// Regions.
    pub regions: Vec<String>,
    /// Select choices of an image whose reference contains this text.
    pub references: Vec<String>,
    /// Select choices of a flavor that lists all of these capability names and values.
    pub flavor: Vec<(String, String)>,
    /// Select only combinations that Gardener admits but that have no image.
    pub only_problems: bool,
}

impl Selection {
    /// Whether no filter is set.
    #[must_use]
    pub fn selects_everything(&self) -> bool {
        self.machine_types.is_empty()
            && self.images.is_empty()
            && self.architectures.is_empty()
            && !self.is_backwards()
            && !self.only_problems
    }

    /// Whether a filter selects by image, to find the machine types that get it.
    #[must_use]
    pub fn is_backwards(&self) -> bool {
        !self.references.is_empty() || !self.flavor.is_empty()
    }

    /// Filters without a match in the offer: the option, the filter, and the existing names.
    pub fn unmatched<'a>(
        &'a self,
        resolved_profile: &'a ResolvedProfile,
    ) -> Vec<(&'static str, &'a str, Vec<&'a str>)> {
        let types: Vec<&str> =
            resolved_profile.machine_types.iter().map(|machine_type| machine_type.name.as_str()).collect();
        let images: Vec<&str> = resolved_profile.images.iter().map(|version| version.image.as_str()).collect();
        let regions: Vec<&str> = resolved_profile.regions.iter().map(String::as_str).collect();
        let architectures: Vec<&str> =
            resolved_profile.machine_types.iter().map(|known| known.architecture.as_str()).collect();
        let mut unmatched = Vec::new();
        let mut check = |option, filters: &'a [String], known: &[&'a str], follows: &dyn Fn(&str) -> bool| {
            let alone = filters.iter().filter(|filter| !follows(filter));
            unmatched.extend(alone.map(|filter| (option, filter.as_str(), known.to_vec())));
        };
        check("type", &self.machine_types, &types, &|filter| types.iter().any(|name| matches(filter, name)));
        check("region", &self.regions, &regions, &|filter| regions.iter().any(|name| matches(filter, name)));
        check("arch", &self.architectures, &architectures, &|filter| architectures.contains(&filter));
        check("image", &self.images, &images, &|filter| {
            let only = Self { images: vec![filter.to_owned()], ..Self::default() };
            resolved_profile.images.iter().any(|version| only.selects_image(version))
        });
        unmatched
    }

    pub(super) fn selects_type(&self, name: &str) -> bool {
        is_requested(&self.machine_types, |pattern| matches(pattern, name))
    }

    /// Whether machine types of this architecture are selected. Their capabilities may lack it, because some providers
    /// compare nothing in the old format.
    pub(super) fn selects_architecture(&self, architecture: &str) -> bool {
        is_requested(&self.architectures, |required| required == architecture)
    }

    pub(super) fn selects_image(&self, version: &SelectableVersion) -> bool {
        is_requested(&self.images, |pattern| match pattern.split_once('@') {
            Some((image, required)) => matches(image, &version.image) && matches(required, &version.version),
            None => matches(pattern, &version.image),
        })
    }

    pub(super) fn selects_region(&self, region: &str) -> bool {
        is_requested(&self.regions, |pattern| matches(pattern, region))
    }

    pub(super) fn selects_reference(&self, name: &ImageName) -> bool {
        is_requested(&self.references, |text| name.value.contains(text))
    }

    /// Whether the chosen flavor is selected in these regions. Without regions, it has one image for all.
    pub(super) fn selects_flavor(
        &self,
        chosen: Option<&SelectableFlavor>,
        regions: &[&str],
        definitions: &[CapabilityDefinition],
    ) -> bool {
        if !self.is_backwards() {
            return true;
        }
        let Some(chosen) = chosen else { return false };
        let named = match regions {
            [] => chosen.anywhere.as_ref().is_some_and(|name| self.selects_reference(name)),
            regions => {
                regions.iter().filter_map(|region| chosen.in_region(region)).any(|name| self.selects_reference(name))
            }
        };
        let capabilities = with_defaults(&chosen.capabilities, definitions);
        let lists =
            |(name, value): &(String, String)| capabilities.values(name).is_some_and(|values| values.contains(value));
        (self.references.is_empty() || named) && self.flavor.iter().all(lists)
    }
}

/// Whether one of the filters matches, or there are none.
fn is_requested(filters: &[String], is_met: impl Fn(&str) -> bool) -> bool {
    filters.is_empty() || filters.iter().any(|filter| is_met(filter))
}

/// Whether a text matches a pattern in which `*` matches any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some(found) = text.find(part) else { return false };
        text = text.get(found + part.len()..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("Standard_D*", "Standard_D4s_v5") && matches("*", "") && matches("*_v5", "Standard_D4s_v5"));
        assert!(matches("S*D*v5", "Standard_D4s_v5") && matches("exact", "exact") && matches("a**b", "ab"));
        assert!(matches("a*c", "abc") && matches("a*", "a") && matches("*b*d", "abcd"));
        assert!(!matches("a", "ab") && !matches("a*a", "a"));
        assert!(!matches("Standard_D*", "Standard_E4s_v5") && !matches("a*b*b", "ab") && !matches("exact", "exact2"));
    }
}
