//! Resolves the image of a flavor: the newest usable one, and among several of them the one with the smallest ID.
//! Every other image gets a reason.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::catalogue::Catalogue;
use super::lookup::{Combination, Filter, Lookup};
use super::record::{ImageRecord, ImageState, PUBLIC, fact};
use super::reference::ImageReference;
use super::sources::ec2_attributes::attribute_name;
use super::variants::Variants;
use wire::api::gardener::Capabilities;
use wire::api::gotext::version::Version;

/// Key of a resolution. All nodes with the same key use the same image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlavorKey {
    /// `spec.type` of CloudProfiles.
    pub provider: &'static str,
    /// The provider's cloud.
    pub realm: String,
    /// Name of the image.
    pub image: String,
    /// The version.
    pub version: String,
    /// Facts that distinguish flavors of a version, with names from [`fact`].
    pub flavor: Arc<Capabilities>,
    /// The region; `None` if the image has the same name in all regions.
    pub region: Option<String>,
}

impl FlavorKey {
    /// The region, for people.
    #[must_use]
    pub fn location(&self) -> &str {
        self.region.as_deref().unwrap_or("every region")
    }

    /// Provider and realm, for people.
    #[must_use]
    pub fn cloud(&self) -> String {
        if self.realm == PUBLIC { self.provider.to_owned() } else { format!("{} {}", self.provider, self.realm) }
    }

    /// The flavor, for people: `amd64 uefi`.
    #[must_use]
    pub fn flavor_text(&self) -> String {
        let values =
            self.flavor.0.iter().filter(|(name, _)| *name != fact::SECURE_BOOT).map(|(_, values)| values.join("/"));
        values.collect::<Vec<_>>().join(" ")
    }

    /// The version as a number. An invalid version is the smallest one.
    #[must_use]
    pub fn number(&self) -> Version {
        Version::parse(&self.version).unwrap_or_else(|_| Version::ZERO.clone())
    }
}

impl fmt::Display for FlavorKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} ({}) of {} in {}",
            self.image,
            self.version,
            self.flavor_text(),
            self.cloud(),
            self.location()
        )
    }
}

/// Restrictions on usable images.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The current time.
    pub now: Timestamp,
    /// Allowed owners; empty leaves the decision to the lookups.
    pub owners: Vec<String>,
    /// Filters for all images.
    pub filters: Vec<Filter>,
}

/// An image that a flavor could use.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The image.
    pub image: &'a ImageRecord,
    /// The decision on it.
    pub verdict: Verdict,
}

/// Decision on a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is used, because it is the newest.
    Chosen,
    /// It is used, because its owner comes first in a lookup that uses owners in order.
    ChosenOwner,
    /// Another one is newer.
    Older,
    /// Another one has the same age and a smaller ID.
    SameAge,
    /// Another one has the same age, and its owner comes first in the lookup.
    SameAgeLaterOwner,
    /// The owner of another one comes first in a lookup that uses owners in order.
    LaterOwner,
    /// It can't be used.
    Rejected(Rejection),
}

impl Verdict {
    /// Whether the image is used.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        matches!(self, Self::Chosen | Self::ChosenOwner)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen => formatter.write_str("chosen: the newest"),
            Self::ChosenOwner => formatter.write_str("chosen: the newest of the first owner in the lookup"),
            Self::Older => formatter.write_str("older"),
            Self::SameAge => formatter.write_str("as old, and its id comes later"),
            Self::SameAgeLaterOwner => formatter.write_str("as old, and its owner comes later in the lookup"),
            Self::LaterOwner => formatter.write_str("its owner comes later in the lookup"),
            Self::Rejected(rejection) => rejection.fmt(formatter),
        }
    }
}

/// Why an image can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Machines can't start from it.
    #[error("it is {0}")]
    Unavailable(String),
    /// Its owner has deprecated it.
    #[error("deprecated since {}", .0.strftime("%F"))]
    Deprecated(Timestamp),
    /// Images of this owner are not allowed.
    #[error("its owner {0:?} is not allowed")]
    Owner(String),
    /// Its encryption differs from what the lookup requires.
    #[error("{}", if *.0 { "it is encrypted" } else { "it is not encrypted" })]
    Encryption(bool),
    /// Its architecture differs from the one in its name.
    #[error("its architecture is {}, not {required}", if .known.is_empty() { "unknown" } else { .known.as_str() })]
    Architecture {
        /// Architecture of the image.
        known: String,
        /// Architecture of the flavor.
        required: String,
    },
    /// It does not match a filter of the lookup.
    #[error("its {0} does not pass the filter")]
    Filter(String),
    /// A fact that distinguishes flavors is missing.
    #[error("its {0} is unknown")]
    UnknownFact(String),
    /// Its name matches several flavors.
    #[error("its name fits several flavors of the lookup")]
    Ambiguous,
}

impl Rejection {
    /// Whether the image belongs to the flavor although it can't be used now.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Deprecated(_))
    }
}

/// A flavor with its candidates, best first.
#[derive(Clone, Debug)]
pub struct Resolved<'a> {
    /// The flavor.
    pub key: FlavorKey,
    /// The candidates.
    pub candidates: Vec<Candidate<'a>>,
    /// The products of the candidates. With more than one, the newest image is unknown.
    pub variants: Variants,
}

impl<'a> Resolved<'a> {
    /// The chosen image.
    #[must_use]
    pub fn chosen(&self) -> Option<&'a ImageRecord> {
        self.candidates.first().filter(|first| first.verdict.is_chosen()).map(|first| first.image)
    }
}

/// Resolves every flavor in a catalogue, from lookups and from sources that include the release of an image. The
/// result is sorted.
#[must_use]
pub fn resolve<'a>(catalogue: &'a Catalogue, lookups: &[Lookup], policy: &Policy) -> Vec<Resolved<'a>> {
    let mut found: BTreeMap<FlavorKey, Vec<Ranked<'a>>> = BTreeMap::new();
    let mut variants: BTreeMap<FlavorKey, Variants> = BTreeMap::new();
    let images = catalogue.images().iter().filter(|image| policy.filters.iter().all(|filter| image.matches(filter)));
    let images: Vec<&ImageRecord> = images.collect();
    for image in &images {
        if let Some(release) = &image.release {
            let key = key(image, &release.image, &release.version, Arc::clone(&image.facts));
            let reason = rejection(image, policy, None);
            found.entry(key).or_default().push(Ranked { image, reason, owner: OwnerRank::default() });
        }
    }
    let mut by_name: Vec<&ImageRecord> = images.into_iter().filter(|image| image.release.is_none()).collect();
    by_name.sort_by(|a, b| a.name.cmp(&b.name));
    for (position, lookup) in lookups.iter().enumerate() {
        for LookupMatch { key, image, reason, variant } in lookup_matches(lookup, &by_name, policy) {
            if reason.as_ref().is_none_or(Rejection::is_temporary) {
                variants.entry(key.clone()).or_default().add(variant, lookup, &image.name);
            }
            let owner = OwnerRank::new(position, &lookup.owners, image, lookup.owners_in_order);
            found.entry(key).or_default().push(Ranked { image, reason, owner });
        }
    }
    let resolved = |(key, candidates)| {
        let variants = variants.remove(&key).unwrap_or_default();
        Resolved { key, candidates: ranked(candidates), variants }
    };
    found.into_iter().map(resolved).collect()
}

/// An image of a flavor, before it is compared with the others.
struct Ranked<'a> {
    image: &'a ImageRecord,
    reason: Option<Rejection>,
    owner: OwnerRank,
}

/// The position of an owner in its lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct OwnerRank {
    /// The same, if it takes precedence over the age of images.
    before_age: [usize; 2],
    /// The position of the lookup, and of the owner in it.
    position: [usize; 2],
}

impl OwnerRank {
    fn new(lookup: usize, owners: &[String], image: &ImageRecord, is_in_order: bool) -> Self {
        let owner = owners.iter().position(|owner| *owner == image.owner).unwrap_or(owners.len());
        let position = [lookup, owner];
        Self { before_age: if is_in_order { position } else { [0, 0] }, position }
    }
}

/// Ranks the images of one flavor for a consumer that allows the owners of a policy.
#[must_use]
pub(super) fn ranked_for<'a>(
    key: FlavorKey,
    images: &[&'a ImageRecord],
    policy: &Policy,
    is_in_order: bool,
) -> Resolved<'a> {
    let candidate = |image: &&'a ImageRecord| Ranked {
        image,
        reason: rejection(image, policy, None),
        owner: OwnerRank::new(0, &policy.owners, image, is_in_order),
    };
    Resolved { key, candidates: ranked(images.iter().map(candidate).collect()), variants: Variants::default() }
}

/// Ranks images, best first. The order is total, because no two images in one place have the same ID.
fn ranked(mut candidates: Vec<Ranked<'_>>) -> Vec<Candidate<'_>> {
    // An image that one lookup rejects may be allowed by another.
    candidates.sort_by(|a, b| {
        (&a.image.reference, a.reason.is_some(), a.owner).cmp(&(&b.image.reference, b.reason.is_some(), b.owner))
    });
    candidates.dedup_by(|a, b| a.image.reference == b.image.reference);
    candidates.sort_by(|a, b| a.location().cmp(&b.location()));
    let best = candidates.first().filter(|first| first.reason.is_none()).map(|first| (first.image, first.owner));
    let usable = candidates.iter().filter(|candidate| candidate.reason.is_none());
    let is_newest = usable.map(|candidate| candidate.image.created).max() == best.map(|(best, _)| best.created);
    let verdict = |Ranked { image, reason, owner }| {
        let verdict = match (reason, best) {
            (Some(reason), _) => Verdict::Rejected(reason),
            (None, None) => Verdict::Older,
            (None, Some((best, _))) if std::ptr::eq(best, image) && is_newest => Verdict::Chosen,
            (None, Some((best, _))) if std::ptr::eq(best, image) => Verdict::ChosenOwner,
            (None, Some((_, first))) if first.before_age < owner.before_age => Verdict::LaterOwner,
            (None, Some((best, _))) if best.created != image.created => Verdict::Older,
            (None, Some((_, first))) if first.position < owner.position => Verdict::SameAgeLaterOwner,
            (None, Some(_)) => Verdict::SameAge,
        };
        Candidate { image, verdict }
    };
    candidates.into_iter().map(verdict).collect()
}

impl<'a> Ranked<'a> {
    /// Its place in the order of candidates.
    fn location(&self) -> (bool, [usize; 2], Reverse<Option<Timestamp>>, [usize; 2], &'a ImageReference) {
        let OwnerRank { before_age, position } = self.owner;
        (self.reason.is_some(), before_age, Reverse(self.image.created), position, &self.image.reference)
    }
}

fn key(image: &ImageRecord, name: &str, version: &str, flavor: Arc<Capabilities>) -> FlavorKey {
    FlavorKey {
        provider: image.provider,
        realm: image.realm.clone(),
        image: name.to_owned(),
        version: version.to_owned(),
        flavor,
        region: image.region.clone(),
    }
}

/// Why an image can't be used, independent of its flavor.
fn rejection(image: &ImageRecord, policy: &Policy, lookup: Option<&Lookup>) -> Option<Rejection> {
    let is_foreign = |owners: &[String]| !owners.is_empty() && !owners.contains(&image.owner);
    if let ImageState::Unavailable(word) = &image.state {
        return Some(Rejection::Unavailable(word.clone()));
    }
    if let Some(since) = image.deprecated
        && image.is_deprecated(policy.now)
    {
        return Some(Rejection::Deprecated(since));
    }
    if is_foreign(&policy.owners) || lookup.is_some_and(|lookup| is_foreign(&lookup.owners)) {
        return Some(Rejection::Owner(image.owner.clone()));
    }
    let lookup = lookup?;
    if image.encrypted != lookup.encrypted {
        return Some(Rejection::Encryption(image.encrypted));
    }
    let failed = lookup.filters.iter().find(|filter| !image.matches(filter));
    failed.map(|filter| Rejection::Filter(filter.name.clone()))
}

/// An image whose name matches a lookup.
pub(super) struct LookupMatch<'a> {
    pub(super) key: FlavorKey,
    pub(super) image: &'a ImageRecord,
    /// Why it can't be used.
    pub(super) reason: Option<Rejection>,
    /// The template of its product.
    pub(super) variant: Arc<str>,
}

/// The images that match a lookup; `by_name` is sorted by name.
pub(super) fn lookup_matches<'a>(
    lookup: &Lookup,
    by_name: &[&'a ImageRecord],
    policy: &Policy,
) -> Vec<LookupMatch<'a>> {
    let mut meanings: HashMap<usize, Vec<(&Combination, &'a str)>> = HashMap::new();
    for combination in &lookup.combinations {
        let prefix = combination.pattern.prefix();
        let start = by_name.partition_point(|image| image.name.as_str() < prefix);
        for (position, image) in by_name.iter().enumerate().skip(start) {
            if !image.name.starts_with(prefix) {
                break;
            }
            let version =
                (image.provider == lookup.provider).then(|| combination.pattern.version(&image.name)).flatten();
            let is_meant =
                |version: &&str| Version::parse(version).is_ok_and(|number| lookup.versions.contains(&number));
            if let Some(version) = version.filter(is_meant) {
                meanings.entry(position).or_default().push((combination, version));
            }
        }
    }
    let of_image = |(position, meanings): (usize, Vec<(&Combination, &'a str)>)| {
        let image = by_name.get(position).copied()?;
        Some(evaluated(lookup, image, meanings, policy))
    };
    meanings.into_iter().filter_map(of_image).flatten().collect()
}

/// Possible flavors of an image according to its name, each with the reason if it can't be used.
fn evaluated<'a>(
    lookup: &Lookup,
    image: &'a ImageRecord,
    meanings: Vec<(&Combination, &str)>,
    policy: &Policy,
) -> Vec<LookupMatch<'a>> {
    let architectures = |flavor: &Capabilities| flavor.values(fact::ARCHITECTURE).unwrap_or_default().to_vec();
    let known = architectures(&image.facts);
    let fits = |(combination, _): &(&Combination, &str)| architectures(&combination.flavor) == known;
    let some_fit = meanings.iter().any(fits);
    let meant = meanings.into_iter().filter(|meaning| !some_fit || fits(meaning)).map(|(combination, version)| {
        let mut flavor = Arc::clone(&combination.flavor);
        let mut reason = (!some_fit).then(|| Rejection::Architecture {
            known: known.join(", "),
            required: architectures(&combination.flavor).join(", "),
        });
        for name in &lookup.facts {
            match image.values(&attribute_name(name)) {
                Some(values) => drop(Arc::make_mut(&mut flavor).0.insert(name.clone(), values.to_vec())),
                None => reason = reason.or_else(|| Some(Rejection::UnknownFact(name.clone()))),
            }
        }
        LookupMatch {
            key: key(image, &combination.image, version, flavor),
            image,
            reason: reason.or_else(|| rejection(image, policy, Some(lookup))),
            variant: combination.pattern.variant(&image.name).unwrap_or_default(),
        }
    });
    let mut meant: Vec<LookupMatch<'a>> = meant.collect();
    meant.sort_by(|a, b| a.key.cmp(&b.key));
    meant.dedup_by(|a, b| a.key == b.key);
    if some_fit && meant.len() > 1 {
        meant.iter_mut().for_each(|found| found.reason = Some(Rejection::Ambiguous));
    }
    meant
}
