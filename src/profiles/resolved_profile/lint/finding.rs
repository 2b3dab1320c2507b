//! The findings of `lint`: location, severity, reason and advice.

use std::fmt;

use serde::Serialize;

use wire::api::bounded_text::enumerated;
use wire::api::gotext::field::FieldErrorType;

/// The severity of a finding. The order is that of printing, with the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The profile is rejected, or machines that Gardener admits get no image.
    Error,
    /// Something does not have the expected effect, or will stop working.
    Warning,
    /// Useful to know before the next change.
    Note,
}

impl Severity {
    /// The word for it in output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A finding about a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The rule that found it.
    pub rule: Rule,
    /// The path of the field.
    pub path: String,
    /// The name of the object that the field belongs to, such as `gardenlinux 1877.3.0` or a machine type.
    pub subject: String,
    /// The problem and its consequence.
    pub reason: String,
    /// How to correct it.
    pub advice: String,
    /// The type of the error, if the field is rejected.
    #[serde(skip)]
    pub(in crate::resolved_profile) refusal: Option<FieldErrorType>,
}

impl Finding {
    /// Sort key: by severity, by rule, then in the order of the document. The error that a field is missing precedes
    /// errors about its empty value.
    pub(super) fn location(&self) -> (Severity, Rule, Vec<String>, Option<FieldErrorType>, String) {
        let steps = self.path.split('[').map(|step| match step.split_once(']') {
            // Padded to the width of the largest index, so that 10 follows 9.
            Some((index, member)) => format!("{index:0>10}{member}"),
            None => step.to_owned(),
        });
        let steps = steps.collect();
        (self.severity, self.rule, steps, self.refusal, self.reason.clone())
    }
}

/// Defines the rules in one table: `/// what it finds`, name, usual severity, id, title.
macro_rules! rules {
    ($($(#[$meaning:meta])* $rule:ident = $severity:ident $id:literal: $title:literal,)*) => {
        /// The rules, in the order in which their findings should be read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$meaning])* $rule,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Self] = &[$(Self::$rule),*];

            /// Its id, which is also its anchor in `docs/cloudprofiles.md`.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$rule => $id,)*
                }
            }

            /// The usual severity of its findings.
            pub(super) fn severity(self) -> Severity {
                match self {
                    $(Self::$rule => Severity::$severity,)*
                }
            }

            /// Its subject, in a few words.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$rule => $title,)*
                }
            }
        }
    };
}

rules! {
    /// The document can't be decoded.
    Unreadable = Error "unreadable": "A member has the wrong type",
    /// A field does not exist.
    UnknownMember = Error "unknown-member": "A member that does not exist",
    /// Gardener rejects a field outside of images, machine types and capabilities.
    ProfileRefused = Error "profile-refused": "Gardener refuses the profile",
    /// Gardener rejects `machineCapabilities`.
    DefinitionRefused = Error "definition-refused": "Gardener refuses a capability",
    /// Gardener rejects a machine type.
    MachineTypeRefused = Error "machine-type-refused": "Gardener refuses a machine type",
    /// Gardener rejects an image or a version.
    ImageRefused = Error "image-refused": "Gardener refuses an image",
    /// The provider rejects its half.
    ProviderConfigRefused = Error "provider-config-refused": "The provider refuses its half",
    /// A version or flavor of core's half has no image in the provider's.
    MappingMissing = Error "mapping-missing": "An image has no counterpart in the provider config",
    /// Several flavors are equally good for a machine type.
    Tie = Error "tie": "Several flavors are equally good",
    /// Machines can't start from a flavor that is chosen.
    UnusableFlavor = Error "unusable-flavor": "Machines can't start from a flavor",
    /// Gardener admits machines for which the provider has no image.
    AdmittedWithoutImage = Error "admitted-without-image": "Admitted, and then no image",
    /// No image fits a machine type.
    MachineTypeWithoutImage = Error "machine-type-without-image": "No image fits a machine type",
    /// A list of values is empty, so that nothing fits.
    EmptyCapability = Error "empty-capability": "An empty list fits nothing",
    /// Pools are moved to a version for which the provider has no image.
    ForcedIntoNothing = Error "forced-into-nothing": "A forced update ends without an image",
    /// An expired version has no successor.
    Stuck = Warning "stuck": "Nothing follows an expired version",
    /// The newest version of an image expires.
    LatestExpires = Warning "latest-expires": "The newest version of an image expires",
    /// A minor of Kubernetes is missing.
    MinorGap = Warning "minor-gap": "A minor of Kubernetes is missing",
    /// The measured Gardener does not support a minor of Kubernetes.
    UnmeasuredKubernetes = Note "unmeasured-kubernetes": "Newer than the measured Gardener supports",
    /// No newer version can be reached in place.
    InPlaceGap = Warning "in-place-gap": "No newer version can be reached in place",
    /// A version of Kubernetes expires soon.
    KubernetesExpiresSoon = Warning "kubernetes-expires-soon": "A version of Kubernetes expires soon",
    /// A version expires soon.
    ExpiresSoon = Warning "expires-soon": "A version expires soon",
    /// The object nearly has the maximum size that can be stored.
    Size = Warning "size": "The object becomes too large",
    /// A capability has no effect, although its name or values suggest one.
    WithoutEffect = Warning "without-effect": "A capability does not do what it says",
    /// Flavors have the same capabilities.
    IdenticalFlavors = Warning "identical-flavors": "Flavors can run the same",
    /// No machine type can use a version.
    UnusedVersion = Warning "unused-version": "No machine type can use a version",
    /// No machine type gets a flavor.
    UnreachableFlavor = Warning "unreachable-flavor": "No machine type gets a flavor",
    /// A flavor has no image in some regions.
    MissingRegion = Warning "missing-region": "A flavor has no image in some regions",
    /// A flavor has images for a region that the profile does not have.
    UnknownRegion = Warning "unknown-region": "Images for a region that the profile does not have",
    /// Two versions point to one image.
    SameImage = Warning "same-image": "Two versions point to one image",
    /// The name of an image contains another version.
    OtherVersion = Warning "other-version": "The name of an image contains another version",
    /// The provider's half lists what core's half does not.
    UnlistedImage = Warning "unlisted-image": "The provider config lists an image that no one can select",
    /// The provider's half has a flavor that core's half does not.
    UnlistedFlavor = Warning "unlisted-flavor": "The provider config has a flavor that is not offered",
    /// The provider's half lists something several times.
    ListedTwice = Warning "listed-twice": "The provider config lists something twice",
    /// A version suffix denotes a capability.
    VersionSuffix = Warning "version-suffix": "A version suffix denotes a capability",
    /// A deprecated version never expires.
    DeprecatedWithoutExpiry = Note "deprecated-without-expiry": "A deprecated version never expires",
    /// Several versions of a minor are supported.
    TwoSupported = Note "two-supported": "Several versions of a minor are supported",
    /// A version has expired.
    Expired = Note "expired": "A version has expired",
    /// A capability has the values true and false.
    TrueOrFalse = Note "true-or-false": "A capability is only true or false",
    /// Gardener rejects the profile unless the provider's webhook sets flavors.
    FilledIn = Note "filled-in": "The provider's webhook has to fill something in",
    /// No known provider has this type.
    UnknownProvider = Note "unknown-provider": "The provider's half is not checked",
    /// The order of preference decides.
    OrderSensitive = Note "order-sensitive": "The order of preference decides",
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.id())
    }
}

/// Names for a sentence: the first few, and how many more there are.
pub(in crate::resolved_profile) fn some_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const NAMED: usize = 4;
    let names: Vec<&str> = names.into_iter().collect();
    match names.len() {
        more if more > NAMED + 1 => {
            let named: Vec<&str> = names.iter().take(NAMED).copied().collect();
            format!("{} and {} more", named.join(", "), more - NAMED)
        }
        _ => enumerated(&names),
    }
}

/// A number with its noun, such as `1 machine type` or `2 machine types`.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Names of machine types with their number, such as `2 machine types (a and b)`.
pub(super) fn machine_types(names: &[&str]) -> String {
    format!("{} ({})", count(names.len(), "machine type"), some_of(names.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rules_have_the_same_id() {
        let ids: std::collections::BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids.len(), Rule::ALL.len());
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(some_of(["a", "b", "c", "d", "e"]), "a, b, c, d and e");
        assert_eq!(some_of(["a", "b", "c", "d", "e", "f"]), "a, b, c, d and 2 more");
    }
}
