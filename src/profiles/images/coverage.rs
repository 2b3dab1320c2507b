//! The part of a cloud that a listing covers completely: every image of some owners in a region, by name. An image that it covers and does not
//! list no longer exists, or can no longer be read.

use std::str::Chars;

use serde::{Deserialize, Serialize};

use super::query::ImageQuery;
use super::record::{ImageRecord, PUBLIC, text};

/// A part of a cloud that a listing covers completely.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Coverage {
    /// `spec.type` of CloudProfiles.
    pub provider: String,
    /// The provider's cloud.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    pub realm: String,
    /// The region.
    pub region: String,
    /// Accounts whose images are listed.
    pub owners: Vec<String>,
    /// Patterns of their names in which `*` matches any text; empty matches every name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

fn public() -> String {
    PUBLIC.to_owned()
}

fn is_public(realm: &str) -> bool {
    realm == PUBLIC
}

impl Coverage {
    /// The coverage of a complete response to a query.
    #[must_use]
    pub fn of_query(query: &ImageQuery, provider: &'static str, region: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            realm: public(),
            region: text(region),
            owners: query.owners.clone(),
            names: query.names.clone(),
        }
    }

    /// Whether a listing with this coverage lists the image if it exists. Without owner or name of the image that is
    /// unknown.
    #[must_use]
    pub fn includes(&self, image: &ImageRecord) -> bool {
        self.provider == image.provider
            && self.realm == image.realm
            && image.region.as_ref() == Some(&self.region)
            && !image.owner.is_empty()
            && self.owners.contains(&image.owner)
            && (self.names.is_empty() || !image.name.is_empty() && self.has_name(&image.name))
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| matches(pattern, name))
    }
}

/// Whether a name matches a pattern of EC2: `*` is any text, and a backslash makes the next character literal. The pattern
/// is short, but hostile names may be long, so only the last `*` is tried again.
fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut retry: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let mut rest = pattern.clone();
        let is_match = match (rest.next(), name.clone().next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((rest.clone(), name.clone()));
                pattern = rest;
                continue;
            }
            (Some('\\'), Some(letter)) => rest.next() == Some(letter),
            (Some(expected), Some(letter)) => expected == letter,
            (None, Some(_)) | (Some(_), None) => false,
        };
        if is_match {
            pattern = rest;
            name.next();
            continue;
        }
        let Some((after_star, from)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        (pattern, name) = (after_star.clone(), from.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::reference::ImageReference;

    fn image(owner: &str, name: &str, region: &str) -> ImageRecord {
        let reference = ImageReference::new("aws", "ami", "ami-0123456789abcdef0").unwrap();
        ImageRecord {
            owner: owner.to_owned(),
            region: Some(region.to_owned()),
            ..ImageRecord::new("aws", reference, name)
        }
    }

    #[test]
    fn only_its_region_owners_and_names_are_covered() {
        let query = |names: &[&str]| ImageQuery {
            owners: vec!["111111111111".to_owned(), "self".to_owned()],
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let covers = |names: &[&str], image: ImageRecord| {
            Coverage::of_query(&query(names), "aws", "eu-central-1").includes(&image)
        };
        assert!(covers(&[], image("111111111111", "", "eu-central-1")));
        assert!(covers(&["x", "os-*-1"], image("111111111111", "os-a-b-1", "eu-central-1")));
        assert!(!covers(&["os-*-1"], image("111111111111", "os-a-2", "eu-central-1")));
        assert!(!covers(&["os-*"], image("111111111111", "", "eu-central-1")), "its name is unknown");
        assert!(!covers(&[], image("", "", "eu-central-1")), "its owner is unknown");
        assert!(!covers(&[], image("222222222222", "", "eu-central-1")));
        assert!(!covers(&[], image("111111111111", "", "eu-west-1")));
    }

    #[test]
    fn patterns_match_as_at_ec2() {
        for (pattern, name) in
            [("*", ""), ("a*c*e", "abcde"), ("a*", "a"), (r"a\*b", "a*b"), ("*-1", "a-1-1"), ("**", "x")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a", ""), ("a*c", "ab"), (r"a\*b", "axb"), ("*-1", "a-2"), ("a?c", "abc")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        assert!(!matches("*a*a*a*a*a*b", &"a".repeat(100_000)));
    }
}
