//! How clouds call an image, in the words of CloudProfiles: one table of members and of what they may hold.

use std::fmt;

/// Longest name of an image at any cloud.
const LONGEST: usize = 512;

/// The name by which machines start from an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference {
    /// The member of a CloudProfile that holds it, such as `ami`.
    pub member: &'static str,
    /// The name, such as `ami-0123456789abcdef0`.
    pub value: String,
}

/// A name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Nobody knows the member.
    #[error("images of {provider:?} have no member {member:?}")]
    Member {
        /// `spec.type` of CloudProfiles.
        provider: String,
        /// The member.
        member: String,
    },
    /// The value has another form.
    #[error("this is no {member}: {form} is expected")]
    Form {
        /// The member.
        member: &'static str,
        /// How it looks.
        form: &'static str,
    },
}

/// What a member may hold.
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
    /// A name at the cloud of CloudProfiles of a type.
    ///
    /// # Errors
    /// When the cloud has no such names.
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

    /// The type of CloudProfiles, if images of it are known.
    #[must_use]
    pub fn provider(name: &str) -> Option<&'static str> {
        FORMS.iter().map(|form| form.provider).find(|provider| *provider == name)
    }

    /// The members that name images at a cloud.
    pub fn members(provider: &str) -> impl Iterator<Item = &'static str> {
        FORMS.iter().filter(move |form| form.provider == provider).map(|form| form.member)
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

/// Whether a path has these steps, each followed by a name.
fn has_steps(path: &str, names: &[&str]) -> bool {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    let follows = |(pair, name): (&[&str], &&str)| matches!(pair, [step, value] if step.eq_ignore_ascii_case(name) && is_plain(value));
    path.starts_with('/') && steps.len() == names.len() * 2 && steps.chunks(2).zip(names).all(follows)
}

#[cfg(test)]
mod tests {
    use super::*;

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
