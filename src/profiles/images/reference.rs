//! Names of images at clouds, with a table of the CloudProfile fields that hold them and their syntax.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Maximum length of an image name at any cloud.
const LONGEST: usize = 512;

/// Prefixes of Azure paths, which are case-insensitive.
const PATHS_OF_AZURE: [&str; 3] = ["/subscriptions/", "/communitygalleries/", "/sharedgalleries/"];

/// The name from which machines start an image. Two names are equal if the cloud treats them as equal; the original
/// spelling is kept.
#[derive(Clone, Debug)]
pub struct ImageReference {
    /// The field of a CloudProfile that holds it, such as `ami`.
    pub member: &'static str,
    /// The name, such as `ami-0123456789abcdef0`.
    pub value: String,
}

/// The name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The field is unknown.
    #[error("images of {provider:?} have no member {member:?}")]
    Member {
        /// `spec.type` of CloudProfiles.
        provider: String,
        /// The field.
        member: String,
    },
    /// The value is malformed.
    #[error("this is no {member}: {form} is expected")]
    Form {
        /// The field.
        member: &'static str,
        /// The expected form.
        form: &'static str,
    },
}

/// Syntax of a field.
struct Form {
    provider: &'static str,
    member: &'static str,
    form: &'static str,
    is_one: fn(&str) -> bool,
}

const FORMS: [Form; 8] = [
    Form { provider: "aws", member: "ami", form: "ami-… with 8 to 17 hexadecimal digits", is_one: is_ami },
    Form {
        provider: "azure",
        member: "communityGalleryImageID",
        form: "/CommunityGalleries/…/Images/…/Versions/…",
        is_one: |value| has_steps(value, &["CommunityGalleries", "Images", "Versions"]),
    },
    Form {
        provider: "azure",
        member: "sharedGalleryImageID",
        form: "/SharedGalleries/…/Images/…/Versions/…",
        is_one: |value| has_steps(value, &["SharedGalleries", "Images", "Versions"]),
    },
    Form {
        provider: "azure",
        member: "id",
        form: "/subscriptions/…",
        is_one: |value| value.to_lowercase().starts_with("/subscriptions/") && is_plain(value),
    },
    Form {
        provider: "gcp",
        member: "image",
        form: "projects/…/global/images/…",
        is_one: |value| value.starts_with("projects/") && value.contains("/global/images/") && is_plain(value),
    },
    Form { provider: "openstack", member: "id", form: "a UUID", is_one: is_uuid },
    Form { provider: "openstack", member: "image", form: "a name", is_one: is_plain },
    Form {
        provider: "alicloud",
        member: "id",
        form: "m-… of letters and digits, or the name of a public image, ….vhd",
        is_one: |value| {
            let own = value.strip_prefix("m-").is_some_and(|rest| !rest.is_empty() && is_alphanumeric(rest));
            own || value.strip_suffix(".vhd").is_some_and(|name| !name.is_empty() && is_plain(name))
        },
    },
];

impl ImageReference {
    /// Parses a name for CloudProfiles of a type.
    ///
    /// # Errors
    /// If it is not a valid name at that cloud.
    pub fn new(provider: &str, member: &str, value: &str) -> Result<Self, ReferenceError> {
        let form = FORMS.iter().find(|form| form.provider == provider && form.member == member);
        let form =
            form.ok_or_else(|| ReferenceError::Member { provider: provider.to_owned(), member: member.to_owned() })?;
        if value.len() <= LONGEST && (form.is_one)(value) {
            Ok(Self { member: form.member, value: value.to_owned() })
        } else {
            Err(ReferenceError::Form { member: form.member, form: form.form })
        }
    }

    /// The static name of a provider type, if its images are supported.
    #[must_use]
    pub fn provider(name: &str) -> Option<&'static str> {
        FORMS.iter().map(|form| form.provider).find(|provider| *provider == name)
    }

    /// The fields that hold image names at a cloud.
    pub fn members(provider: &str) -> impl Iterator<Item = &'static str> {
        FORMS.iter().filter(move |form| form.provider == provider).map(|form| form.member)
    }
}

/// Whether a cloud treats two names as equal.
#[must_use]
pub fn is_same_name(a: &str, b: &str) -> bool {
    by_letters(a, b) == Ordering::Equal
}

/// Order of names in which names that a cloud treats as equal are equal.
fn by_letters(a: &str, b: &str) -> Ordering {
    match (is_of_azure(a), is_of_azure(b)) {
        (false, false) => a.cmp(b),
        (a_is_path, b_is_path) => compared(a, a_is_path).cmp(compared(b, b_is_path)),
    }
}

/// The bytes of a name for comparison.
fn compared(name: &str, is_path: bool) -> impl Iterator<Item = u8> {
    name.bytes().map(move |byte| if is_path { byte.to_ascii_lowercase() } else { byte })
}

fn is_of_azure(name: &str) -> bool {
    let begins = |path: &&str| name.get(..path.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(path));
    name.starts_with('/') && PATHS_OF_AZURE.iter().any(begins)
}

impl PartialEq for ImageReference {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ImageReference {}

impl PartialOrd for ImageReference {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ImageReference {
    fn cmp(&self, other: &Self) -> Ordering {
        self.member.cmp(other.member).then_with(|| by_letters(&self.value, &other.value))
    }
}

impl Hash for ImageReference {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.member.hash(state);
        if is_of_azure(&self.value) {
            self.value.to_ascii_lowercase().hash(state);
        } else {
            self.value.hash(state);
        }
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.value)
    }
}

fn is_alphanumeric(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric())
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic())
}

fn is_ami(text: &str) -> bool {
    let digits = text.strip_prefix("ami-").unwrap_or_default();
    (8..=17).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_hexdigit())
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|digit| digit == '-' || digit.is_ascii_hexdigit())
}

/// Whether a path consists of these segments, each followed by a name.
fn has_steps(path: &str, names: &[&str]) -> bool {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    let follows = |(pair, name): (&[&str], &&str)| matches!(pair, [step, value] if step.eq_ignore_ascii_case(name) && is_plain(value));
    path.starts_with('/') && steps.len() == names.len() * 2 && steps.chunks(2).zip(names).all(follows)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    #[test]
    fn names_are_the_same_where_their_cloud_takes_them_for_the_same() {
        for (provider, member, a, b, same) in [
            (
                "azure",
                "communityGalleryImageID",
                "/CommunityGalleries/g/Images/i/Versions/1.0.0",
                "/communityGalleries/G/images/I/versions/1.0.0",
                true,
            ),
            (
                "azure",
                "sharedGalleryImageID",
                "/SharedGalleries/g/Images/i/Versions/1.0.0",
                "/sharedGalleries/g/images/i/versions/1.0.0",
                true,
            ),
            ("azure", "id", "/subscriptions/s/resourceGroups/R", "/Subscriptions/S/resourcegroups/r", true),
            ("azure", "id", "/subscriptions/s/resourceGroups/r", "/subscriptions/s/resourceGroups/r2", false),
            ("alicloud", "id", "m-gw8Example", "m-gw8example", false),
            ("openstack", "image", "Flatcar", "flatcar", false),
            ("openstack", "image", "/Flatcar", "/flatcar", false),
        ] {
            let [a, b] = [a, b].map(|value| ImageReference::new(provider, member, value).unwrap());
            assert_eq!(
                (a == b, a.cmp(&b) == Ordering::Equal, b.cmp(&a) == Ordering::Equal),
                (same, same, same),
                "{a} {b}"
            );
            let count = if same { 1 } else { 2 };
            assert_eq!(HashSet::from([a.clone(), b.clone()]).len(), count, "{a} {b}");
            assert_eq!(BTreeSet::from([a.clone(), b.clone()]).len(), count, "{a} {b}");
            assert_eq!(is_same_name(&a.value, &b.value), same);
        }
    }

    #[test]
    fn ids_that_are_no_ids_are_refused() {
        for (provider, member, good, bad) in [
            ("aws", "ami", "ami-0123456789abcdef0", "ami-0123 456"),
            (
                "azure",
                "communityGalleryImageID",
                "/CommunityGalleries/g/Images/i/Versions/1.0.0",
                "/CommunityGalleries/g/Images/i",
            ),
            ("azure", "id", "/subscriptions/s/resourceGroups/r", "subscriptions"),
            ("gcp", "image", "projects/p/global/images/i", "projects/p/i"),
            ("openstack", "id", "6f0c4e0e-9b1a-4c44-8a3c-000000000001", "6f0c4e0e"),
            ("alicloud", "id", "m-gw8example1", "gw8example1"),
            ("alicloud", "id", "os_3_x64_20G_alibase_20261118.vhd", "os 3.vhd"),
        ] {
            assert!(ImageReference::new(provider, member, good).is_ok(), "{good}");
            assert!(ImageReference::new(provider, member, bad).is_err(), "{bad}");
        }
        let error = ImageReference::new("aws", "urn", "a:b:c:d").unwrap_err();
        assert_eq!(error.to_string(), "images of \"aws\" have no member \"urn\"");
    }
}
