//! Versions that point to the image of another version: a line was copied, and its reference was not changed.

use std::collections::{BTreeMap, BTreeSet};

use super::Lint;
use super::finding::Rule;
use crate::resolved_profile::selectable::{SelectableFlavor, SelectableVersion};
use crate::versions::candidates::numbers;
use wire::api::gotext::version::Version;

/// Digits of a date, which images write with and without separators.
const DATE_DIGITS: usize = 6;
/// Major versions from this one on are distinctive enough to identify a version with two numbers.
const LARGE_MAJOR: u64 = 100;

/// One reference of a flavor.
#[derive(Clone, Copy)]
struct Reference<'a> {
    version: &'a SelectableVersion,
    flavor: &'a SelectableFlavor,
    region: Option<&'a str>,
    value: &'a str,
}

/// Two versions with references in common: the one that points to the image of the other, and the first of the references.
struct Shared<'a> {
    first: Reference<'a>,
    other: &'a SelectableVersion,
    values: Vec<&'a str>,
}

impl<'a> Lint<'a> {
    pub(super) fn same_images(&mut self) {
        let references = self.references();
        let shared = shared(&references);
        for shared in &shared {
            self.same_image(shared);
        }
        // Report a reference once, even if several regions have it.
        let mut reported: BTreeSet<(&str, &str)> = BTreeSet::new();
        for Shared { first, values, .. } in &shared {
            reported.extend(values.iter().map(|value| (first.version.path.as_str(), *value)));
        }
        let listed = self.listed_numbers();
        for reference in references {
            if reported.insert((reference.version.path.as_str(), reference.value)) {
                self.other_version(reference, &listed);
            }
        }
    }

    /// The versions of each image with their numbers.
    fn listed_numbers(&self) -> BTreeMap<&'a str, Vec<([u64; 3], &'a str)>> {
        let mut listed: BTreeMap<&str, Vec<([u64; 3], &str)>> = BTreeMap::new();
        for version in &self.resolved_profile().images {
            let numbers = parsed(&version.version).map(|numbers| (numbers, version.version.as_str()));
            listed.entry(&version.image).or_default().extend(numbers);
        }
        listed
    }

    fn references(&self) -> Vec<Reference<'a>> {
        let mut references = Vec::new();
        for version in &self.resolved_profile().images {
            for flavor in &version.flavors {
                let regional = flavor.by_region.iter().map(|(region, name)| (Some(region.as_str()), name));
                let all = flavor.anywhere.iter().map(|name| (None, name)).chain(regional);
                let named = all.filter(|(_, name)| !name.value.is_empty());
                references.extend(named.map(|(region, name)| Reference {
                    version,
                    flavor,
                    region,
                    value: &name.value,
                }));
            }
        }
        references
    }

    fn same_image(&mut self, Shared { first, other, values }: &Shared<'_>) {
        let version = first.version;
        let value = first.value;
        let more = match values.len() {
            1 => String::new(),
            several => format!(" and {} more", several - 1),
        };
        let named = if version.image == other.image { other.version.clone() } else { other.title() };
        let reason = format!(
            "{named} has the same image ({value}{more}). Nodes that maintenance moves from one version to the other are replaced \
             by nodes with the image that they had."
        );
        let advice = format!("Write the image of {}, or remove the version until there is one.", version.version);
        self.find(Rule::SameImage, &first.flavor.path, version.title(), reason, advice);
    }

    fn other_version(&mut self, reference: Reference<'_>, listed: &BTreeMap<&str, Vec<([u64; 3], &str)>>) {
        let Reference { version, flavor, value, .. } = reference;
        let tokens = tokens(value);
        let Some(own) = parsed(&version.version) else { return };
        if mentions(&tokens, own) || has_date_of(&tokens, &version.version) {
            return;
        }
        let mut listed = listed.get(version.image.as_str()).into_iter().flatten();
        let other = listed.find(|(numbers, _)| mentions(&tokens, *numbers)).map(|(_, text)| (*text).to_owned());
        let Some(other) = other.or_else(|| tokens.iter().find_map(|token| token.as_version(own))) else { return };
        let reason = format!(
            "The name of the image says {other} ({value}): new nodes of pools with {} would run another version.",
            version.version
        );
        let advice = format!("Write the image of {}.", version.version);
        self.find(Rule::OtherVersion, &flavor.path, version.title(), reason, advice);
    }
}

/// Versions with other numbers that have a reference in common in the same region.
fn shared<'a>(references: &[Reference<'a>]) -> Vec<Shared<'a>> {
    let mut by_value: BTreeMap<(Option<&str>, String), Vec<Reference<'a>>> = BTreeMap::new();
    for reference in references {
        by_value.entry((reference.region, normalized(reference.value))).or_default().push(*reference);
    }
    let mut found: BTreeMap<(&str, &str), Shared<'a>> = BTreeMap::new();
    for same in by_value.values().filter(|same| same.len() > 1) {
        let owners = owners(same);
        for reference in same {
            let Some(owner) = owners.get(reference.version.image.as_str()) else { continue };
            if !is_copy(reference, owner) {
                continue;
            }
            let key = (reference.version.path.as_str(), owner.path.as_str());
            let shared =
                found.entry(key).or_insert_with(|| Shared { first: *reference, other: owner, values: Vec::new() });
            if !shared.values.contains(&reference.value) {
                shared.values.push(reference.value);
            }
        }
    }
    found.into_values().collect()
}

/// The version that owns a shared reference, by image name: the version that the reference contains, or else the oldest
/// version.
fn owners<'a>(same: &[Reference<'a>]) -> BTreeMap<&'a str, &'a SelectableVersion> {
    let tokens = same.first().map(|first| tokens(first.value)).unwrap_or_default();
    let is_named =
        |reference: &&Reference<'_>| parsed(&reference.version.version).is_some_and(|own| mentions(&tokens, own));
    let named = same.iter().find(is_named).map(|reference| reference.version);
    let mut owners: BTreeMap<&'a str, &'a SelectableVersion> = BTreeMap::new();
    for Reference { version, .. } in same {
        let Ok(age) = Version::parse(&version.version) else { continue };
        let owner = owners.entry(&version.image).or_insert(named.unwrap_or(version));
        if named.is_none() && Version::parse(&owner.version).is_ok_and(|of_owner| age < of_owner) {
            *owner = version;
        }
    }
    owners
}

/// Whether a reference was copied from another version. Variants of one version may share images, and an image may have several
/// names.
fn is_copy(reference: &Reference<'_>, owner: &SelectableVersion) -> bool {
    let version = reference.version;
    let (Some(own), Some(of_owner)) = (parsed(&version.version), parsed(&owner.version)) else { return false };
    own != of_owner && (version.image == owner.image || mentions(&tokens(reference.value), of_owner))
}

/// The reference as clouds compare it: without the address of the service, in one case.
fn normalized(value: &str) -> String {
    let path = value.split_once("://").and_then(|(_, rest)| rest.find("projects/").map(|start| &rest[start..]));
    path.unwrap_or(value).to_lowercase()
}

fn parsed(version: &str) -> Option<[u64; 3]> {
    let Version { major, minor, patch, .. } = Version::parse(numbers(version)).ok()?;
    Some([major, minor, patch])
}

/// A sequence of numbers in a name that may be a version: `1877.3.0`, `1877-3`.
struct Token {
    numbers: Vec<u64>,
    digits: String,
    is_dotted: bool,
}

impl Token {
    /// The version that the numbers clearly are: three numbers separated by dots, or two or three numbers that are not
    /// a date, for an image whose major versions are large.
    fn as_version(&self, [own_major, ..]: [u64; 3]) -> Option<String> {
        let is_version = match self.numbers[..] {
            [_, _, _] if self.is_dotted => true,
            [major, minor] | [major, minor, _] => {
                let is_date = (1990..2100).contains(&major) && (1..=12).contains(&minor);
                own_major >= LARGE_MAJOR && major >= LARGE_MAJOR && !is_date
            }
            _ => false,
        };
        let texts: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        is_version.then(|| texts.join("."))
    }
}

/// The numbers of a reference that may be versions. Skips ids of random digits.
fn tokens(value: &str) -> Vec<Token> {
    value.split(['/', ':']).filter(|segment| !is_uuid(segment)).flat_map(tokens_of_segment).collect()
}

fn is_uuid(segment: &str) -> bool {
    let lengths = segment.split('-').map(str::len);
    let is_hex = |character: char| character == '-' || character.is_ascii_hexdigit();
    lengths.eq([8, 4, 4, 4, 12]) && segment.chars().all(is_hex)
}

fn tokens_of_segment(value: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut before: Option<char> = None;
    for part in value.split_inclusive(|character: char| !character.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
        let separator = part.chars().next_back().filter(|last| !last.is_ascii_alphanumeric());
        let digits = word.strip_prefix(['v', 'V']).unwrap_or(word);
        // Rust's parser accepts a plus sign, which is no digit.
        let number = if digits.starts_with('+') { None } else { digits.parse::<u64>().ok() };
        match (number, before, tokens.last_mut()) {
            (Some(number), Some(between), Some(token)) => {
                token.is_dotted &= between == '.';
                token.numbers.push(number);
                token.digits.push_str(digits);
            }
            (Some(number), ..) => {
                tokens.push(Token { numbers: vec![number], digits: digits.to_owned(), is_dotted: true });
            }
            (None, ..) => {}
        }
        before = separator.filter(|separator| number.is_some() && ['.', '-', '_'].contains(separator));
    }
    tokens
}

/// Whether a name contains a version. Trailing zeros may be missing if the name ends there or a date follows.
fn mentions(tokens: &[Token], [major, minor, patch]: [u64; 3]) -> bool {
    tokens.iter().any(|token| {
        (0..token.numbers.len()).any(|start| {
            let here = token.numbers.get(start..).unwrap_or_default();
            let ends = |length: usize| here.get(length).is_none_or(|next| next.to_string().len() >= DATE_DIGITS);
            match here {
                [a, b, c, ..] if [*a, *b, *c] == [major, minor, patch] => true,
                [a, b, ..] if [*a, *b] == [major, minor] => patch == 0 && ends(2),
                [a, ..] if *a == major && major >= LARGE_MAJOR => minor == 0 && patch == 0 && ends(1),
                _ => false,
            }
        })
    })
}

/// Whether a name contains the date that is one of a version's numbers.
fn has_date_of(tokens: &[Token], version: &str) -> bool {
    let mut dates = numbers(version).split('.').filter(|number| number.len() >= DATE_DIGITS);
    dates.any(|date| tokens.iter().any(|token| token.digits.contains(date)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(name: &str, version: &str) -> bool {
        let tokens = tokens(name);
        mentions(&tokens, parsed(version).unwrap()) || has_date_of(&tokens, version)
    }

    #[test]
    fn names_contain_versions_in_many_forms() {
        for (name, version) in [
            ("/CommunityGalleries/gl/Images/gen2/Versions/1877.3.0", "1877.3.0"),
            ("kinvolk:flatcar:stable:3033.2.0", "3033.2.0"),
            ("projects/p/global/images/gardenlinux-amd64-1877-3-6dcba12", "1877.3.0"),
            ("gardenlinux-v1877.3-20260101", "1877.3.0-gen2"),
            ("SUSE:sles-15-sp3-chost-byos:gen2:2022.05.05", "15.3.20220505"),
            ("Canonical:ubuntu:22_04-lts:22.04.202206220", "22.4.20220622"),
            ("gardenlinux-2249", "2249.0.0"),
        ] {
            assert!(contains(name, version), "{name} {version}");
        }
        for (name, version) in [("gl-1877-12", "1877.1.0"), ("gl-1877-3-5", "1877.3.0"), ("ami-0877", "877.1.0")] {
            assert!(!contains(name, version), "{name} {version}");
        }
    }

    #[test]
    fn other_versions_are_three_numbers_or_large() {
        let other = |name: &str, own: &str| {
            let own = parsed(own).unwrap();
            tokens(name).iter().find_map(|token| token.as_version(own))
        };
        assert_eq!(other("os-1.2.3", "1.2.4"), Some("1.2.3".to_owned()));
        assert_eq!(other("gardenlinux-amd64-1592-9-6dcba12", "1877.3.0"), Some("1592.9".to_owned()));
        for (name, own) in [("os-1-2-3", "1.2.4"), ("os-2024-05-01", "1877.3.0"), ("22_04-lts", "1877.3.0")] {
            assert_eq!(other(name, own), None, "{name}");
        }
    }

    #[test]
    fn random_ids_contain_no_version() {
        assert!(!contains("/images/2249f0aa-1877-2249-8877-123456789012", "2249.0.0"));
        assert!(contains("/images/2249f0aa-1877/Versions/2249.0.0", "2249.0.0"));
    }

    #[test]
    fn addresses_of_an_image_are_one_reference() {
        let path = "projects/p/global/images/GL-1";
        assert_eq!(normalized(&format!("https://www.googleapis.com/compute/v1/{path}")), normalized(path));
    }
}
