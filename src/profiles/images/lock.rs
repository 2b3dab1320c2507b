//! The image to which each flavor was first resolved. It stays until a user updates it; newer images are only
//! reported.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::catalogue::Catalogue;
use super::lookup::Lookup;
use super::record::ImageRecord;
use super::reference::ImageReference;
use super::resolution::{FlavorKey, Resolved, Verdict};
use super::variants::{MixedVariants, Variants};

/// The locked image of each flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// Images by flavor, sorted.
    pub images: BTreeMap<FlavorKey, LockedImage>,
}

/// An image at the time it was locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedImage {
    /// Name at the cloud.
    pub reference: ImageReference,
    /// Display name.
    pub name: String,
    /// Creation time.
    pub created: Option<Timestamp>,
    /// Since when the flavor has it.
    pub locked: Timestamp,
}

impl LockedImage {
    fn new(image: &ImageRecord, now: Timestamp) -> Self {
        Self { reference: image.reference.clone(), name: image.name.clone(), created: image.created, locked: now }
    }
}

/// A flavor that gets another image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The flavor.
    pub key: FlavorKey,
    /// The previous image.
    pub before: Option<LockedImage>,
    /// The new image.
    pub after: LockedImage,
    /// The reason.
    pub cause: Cause,
}

/// Why a flavor gets another image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The flavor had no image.
    First,
    /// The version is newer than all locked ones.
    NewVersion,
    /// The same version was built again.
    Newer,
    /// An owner that comes first in the lookup has one.
    EarlierOwner,
    /// The sources no longer have the locked image.
    Gone,
    /// The locked image can no longer be used.
    Unusable(String),
    /// The image was promoted from another landscape.
    Promoted,
}

impl Cause {
    /// Text for people.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::First => "first image of this flavor".to_owned(),
            Self::NewVersion => "newer version".to_owned(),
            Self::Newer => "newer image of the same version".to_owned(),
            Self::EarlierOwner => "an owner that comes first in the lookup has one".to_owned(),
            Self::Gone => "the locked image no longer exists".to_owned(),
            Self::Unusable(reason) => format!("the locked image can't be used: {reason}"),
            Self::Promoted => "promoted".to_owned(),
        }
    }
}

/// Scope of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdatePolicy {
    /// Newer images of locked versions, and the newest version.
    All,
    /// Newer images of locked versions.
    Security,
}

impl Lock {
    /// Adds missing flavors. Locked images stay, even if there are newer ones.
    pub fn add(&mut self, resolved: &[Resolved<'_>], now: Timestamp) -> Vec<Change> {
        let new = resolved.iter().filter(|resolved| !self.images.contains_key(&resolved.key));
        let changes = new.filter_map(|resolved| {
            let after = LockedImage::new(resolved.chosen()?, now);
            Some(Change { key: resolved.key.clone(), before: None, after, cause: Cause::First })
        });
        let changes: Vec<Change> = changes.collect();
        self.apply(&changes);
        changes
    }

    /// Possible changes: newer images of locked flavors, and replacements of unusable ones.
    #[must_use]
    pub fn available(&self, resolved: &[Resolved<'_>], catalogue: &Catalogue, now: Timestamp) -> Vec<Change> {
        self.available_among(resolved, |key, locked| is_listed(key, locked, catalogue), now)
    }

    /// Like [`Self::available`], with a callback that checks whether an image exists.
    pub(super) fn available_among(
        &self,
        resolved: &[Resolved<'_>],
        is_listed: impl Fn(&FlavorKey, &LockedImage) -> bool,
        now: Timestamp,
    ) -> Vec<Change> {
        let change = |resolved: &Resolved<'_>| {
            let locked = self.images.get(&resolved.key)?;
            let chosen = resolved.chosen().filter(|chosen| chosen.reference != locked.reference)?;
            let known = resolved.candidates.iter().find(|candidate| candidate.image.reference == locked.reference);
            let cause = match known.map(|known| &known.verdict) {
                // An image of the same age is not newer, so the locked one stays.
                Some(Verdict::SameAge | Verdict::SameAgeLaterOwner) => return None,
                Some(Verdict::Rejected(reason)) => Cause::Unusable(reason.to_string()),
                Some(Verdict::LaterOwner) => Cause::EarlierOwner,
                Some(_) => Cause::Newer,
                None if is_listed(&resolved.key, locked) => Cause::Unusable("it is no image of this flavor".to_owned()),
                None => Cause::Gone,
            };
            Some(Change {
                key: resolved.key.clone(),
                before: Some(locked.clone()),
                after: LockedImage::new(chosen, now),
                cause,
            })
        };
        resolved.iter().filter_map(change).collect()
    }

    /// Verifies that each flavor has images of one product, including the locked image.
    ///
    /// # Errors
    /// For the first flavor with images of several products.
    pub fn ensure_separate(&self, resolved: &[Resolved<'_>], lookups: &[Lookup]) -> Result<(), MixedVariants> {
        for Resolved { key, variants, .. } in resolved {
            let mut variants = variants.clone();
            if let Some(locked) = self.images.get(key)
                && !variants.is_empty()
            {
                add_named(&mut variants, key, &locked.name, lookups);
            }
            variants.ensure_one(key)?;
        }
        Ok(())
    }

    /// Locked flavors whose image no source has.
    pub fn gone<'a>(&'a self, catalogue: &'a Catalogue) -> impl Iterator<Item = (&'a FlavorKey, &'a LockedImage)> {
        self.images.iter().filter(|(key, locked)| !is_listed(key, locked, catalogue))
    }

    /// Applies the changes that the policy allows, to one image or to all.
    pub fn update(
        &mut self,
        resolved: &[Resolved<'_>],
        catalogue: &Catalogue,
        policy: UpdatePolicy,
        image: Option<&str>,
        now: Timestamp,
    ) -> Vec<Change> {
        let mut changes = self.available(resolved, catalogue, now);
        if policy == UpdatePolicy::All {
            changes.extend(self.new_versions(resolved, now));
        }
        changes.retain(|change| image.is_none_or(|image| change.key.image == image));
        changes.sort_by(|a, b| a.key.cmp(&b.key));
        self.apply(&changes);
        changes
    }

    /// The newest version of each locked flavor, if it is newer than the locked ones.
    fn new_versions(&self, resolved: &[Resolved<'_>], now: Timestamp) -> Vec<Change> {
        let without_version = |key: &FlavorKey| FlavorKey { version: String::new(), ..key.clone() };
        let mut newest: BTreeMap<FlavorKey, &FlavorKey> = BTreeMap::new();
        for key in self.images.keys() {
            let known = newest.entry(without_version(key)).or_insert(key);
            if key.number() > known.number() {
                *known = key;
            }
        }
        let mut found: BTreeMap<FlavorKey, Change> = BTreeMap::new();
        for resolved in resolved {
            let any_version = without_version(&resolved.key);
            let is_newer = |known: &FlavorKey| resolved.key.number() > known.number();
            let beats_locked = newest.get(&any_version).is_some_and(|locked| is_newer(locked));
            let beats_found = found.get(&any_version).is_none_or(|found| is_newer(&found.key));
            if let Some(chosen) = resolved.chosen()
                && beats_locked
                && beats_found
            {
                let after = LockedImage::new(chosen, now);
                let change = Change { key: resolved.key.clone(), before: None, after, cause: Cause::NewVersion };
                found.insert(any_version, change);
            }
        }
        found.into_values().collect()
    }

    pub(super) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            self.images.insert(change.key.clone(), change.after.clone());
        }
    }
}

fn is_listed(key: &FlavorKey, locked: &LockedImage, catalogue: &Catalogue) -> bool {
    catalogue.find(key.provider, &key.realm, key.region.as_deref(), &locked.reference).is_some()
}

/// Adds the product of an image of which only the name is known. An image that no lookup matches may have been locked
/// with other lookups.
fn add_named(variants: &mut Variants, key: &FlavorKey, name: &str, lookups: &[Lookup]) {
    for lookup in lookups.iter().filter(|lookup| lookup.provider == key.provider) {
        for combination in lookup.combinations.iter().filter(|combination| combination.image == key.image) {
            let flavor = &combination.flavor.0;
            let is_flavor = flavor.iter().all(|(fact, values)| key.flavor.values(fact) == Some(values.as_slice()));
            if !is_flavor || combination.pattern.version(name) != Some(&key.version) {
                continue;
            }
            if let Some(variant) = combination.pattern.variant(name) {
                variants.add(variant, lookup, name);
            }
        }
    }
}
