//! The versions that maintenance moves pools and control planes to when their version expires, and versions without
//! such a successor (docs/versions.md).

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Lint;
use super::finding::{Rule, count, machine_types, some_of};
use super::ways::{Destination, NodeUpdate, PoolKinds, Way};
use crate::resolved_profile::resolution::{ResolvedVersion, TypeGroup};
use crate::versions::catalog::{ListedImage, ListedImageVersion, ListedVersion, VersionCatalog};
use crate::versions::maintenance::forced_kubernetes;
use crate::versions::measured_kubernetes::{is_too_new, why_too_new};
use wire::api::gotext::version::Version;
use wire::capabilities::Classification;

impl<'a> Lint<'a> {
    /// Reports the effects on pools when their image version expires.
    pub(super) fn expired_images(&mut self, kinds: &PoolKinds<'a, '_>) {
        for version in self.resolution.versions() {
            let expires = version.selectable.expires;
            if expires.is_none() && !version.selectable.is_expired() {
                continue;
            }
            let ways = self.ways(kinds, version, self.moment_of(expires));
            for way in &ways {
                let of_all = ways.iter().filter(|other| other.nodes == way.nodes).count() == 1;
                match way.to {
                    Destination::Nowhere => self.stuck_image(kinds, version, expires, (of_all, way)),
                    Destination::Refused(to) => self.refused_image(version, expires, to),
                    Destination::Version(to) if !version.selectable.is_expired() => {
                        self.without_image_then(version, expires, to, &way.groups);
                    }
                    Destination::Version(_) => {}
                }
            }
        }
    }

    fn stuck_image(
        &mut self,
        kinds: &PoolKinds<'_, '_>,
        version: &ResolvedVersion<'_>,
        expires: Option<Timestamp>,
        (of_all, way): (bool, &Way<'_>),
    ) {
        let Some(image) = kinds.image(version) else { return };
        let names: Vec<&str> = way.groups.iter().flat_map(|group| group.names()).collect();
        let whose = if of_all { "it".to_owned() } else { machine_types(&names) };
        let others = image.versions.iter().map(|other| &other.listed);
        let others = others.filter(|other| other.at(self.moment_of(expires)) != Classification::Preview);
        let newest = others.filter_map(|other| Some((other.version.as_ref().ok()?, other.text))).max();
        let is_newest = newest.is_some_and(|(_, text)| text == version.selectable.version);
        let rule = if is_newest && !version.selectable.is_expired() { Rule::LatestExpires } else { Rule::Stuck };
        let (who, advice) = match way.nodes {
            NodeUpdate::Rolling => {
                (whose, "Add its successor, or move the expirationDate; else owners have to choose another image.")
            }
            NodeUpdate::InPlace => (
                format!("{whose} that are updated in place"),
                "Add a successor with inPlaceUpdates whose minVersionForUpdate is not above this version, or move the expirationDate.",
            ),
        };
        let why = match way.nodes {
            NodeUpdate::Rolling => "that is no preview and fits them, and there is none".to_owned(),
            NodeUpdate::InPlace => out_of_reach(image, version),
        };
        let strategy = image.strategy();
        let required = match strategy {
            "patch" => "a newer version of the same major",
            "minor" => "a newer version",
            _ => "a newer, unexpired version",
        };
        let reason = format!(
            "{} pools with {who} are stuck: with updateStrategy {strategy} they need {required} {why}.",
            self.end(expires)
        );
        self.find(rule, &version.selectable.path, version.selectable.title(), reason, advice);
    }

    /// Pools for which maintenance chooses a version that the API server does not accept yet.
    fn refused_image(&mut self, version: &ResolvedVersion<'_>, expires: Option<Timestamp>, to: usize) {
        let Some(to) = self.resolution.versions().get(to) else { return };
        let reason = format!(
            "{} pools with it are stuck: maintenance chooses {}, and the API server refuses that because its first stage has not \
             begun.",
            self.end(expires),
            to.selectable.version
        );
        let advice = format!("Let the lifecycle of {} begin before.", to.selectable.version);
        self.find(Rule::Stuck, &version.selectable.path, version.selectable.title(), reason, advice);
    }

    /// Pools that are moved to a version for which the provider has no image.
    fn without_image_then(
        &mut self,
        from: &ResolvedVersion<'_>,
        expires: Option<Timestamp>,
        to: usize,
        groups: &[&TypeGroup<'_>],
    ) {
        let Some(to) = self.resolution.versions().get(to) else { return };
        let gets = |version: &ResolvedVersion<'_>, group: &TypeGroup<'_>, region: Option<&str>| {
            let mut there = version.availability.iter().filter(|available| {
                available.regions.is_empty() || region.is_none_or(|region| available.regions.contains(&region))
            });
            there.any(|available| self.resolution.chosen(group, available).is_some())
        };
        let regions: Vec<Option<&str>> = match from.selectable.is_regional() {
            true => self.resolved_profile().regions.iter().map(|region| Some(region.as_str())).collect(),
            false => vec![None],
        };
        let loses = |group: &TypeGroup<'_>, region: Option<&str>| gets(from, group, region) && !gets(to, group, region);
        let lost: Vec<&str> = groups
            .iter()
            .filter(|group| regions.iter().any(|region| loses(group, *region)))
            .flat_map(|group| group.names())
            .collect();
        if lost.is_empty() {
            return;
        }
        let there = regions.iter().filter(|region| groups.iter().any(|group| loses(group, **region)));
        let there: Vec<&str> = there.copied().flatten().collect();
        let location = if there.is_empty() { String::new() } else { format!(" in {}", some_of(there)) };
        let reason = format!(
            "{} pools with {} are moved to {}, of which the provider config has no image for them{location}: they get no machines \
             any more.",
            self.end(expires),
            machine_types(&lost),
            to.selectable.version
        );
        let advice = "Add the image before, or move the expirationDate.";
        self.find(Rule::ForcedIntoNothing, &from.selectable.path, from.selectable.title(), reason, advice);
    }

    /// Reports the effects on control planes when their version expires, and minors from which no update is possible.
    pub(super) fn kubernetes(&mut self, catalog: &VersionCatalog<'_>) {
        let gaps = self.minor_gaps(catalog);
        self.unmeasured_kubernetes(catalog);
        for (index, listed) in catalog.kubernetes.iter().enumerate() {
            let expires = listed.expires();
            let has_expired = listed.at(self.settings.now) == Classification::Expired;
            if expires.is_none() && !has_expired {
                continue;
            }
            let moment = self.moment_of(expires);
            let Ok(Some(update)) = forced_kubernetes(listed.text, catalog, moment) else { continue };
            let to = update.to.ok();
            let path = kubernetes_path(index);
            let subject = kubernetes_title(listed);
            self.kubernetes_ends(&path, &subject, (has_expired, expires), to.as_deref());
            // Gardener itself rejects an expiration date of the newest version.
            let is_newest = catalog.kubernetes.iter().all(|other| is_at_most(other, listed));
            let is_below_gap =
                listed.version.as_ref().is_ok_and(|version| gaps.contains(&(version.major, version.minor)));
            if to.is_none() && !is_below_gap && !is_newest {
                let reason = format!(
                    "{} control planes and pools with it are stuck: there is neither a newer patch nor a version of the next \
                     minor that is no preview.",
                    self.end(expires)
                );
                let advice = "Add a version of the next minor, or move the expirationDate.";
                self.find(Rule::Stuck, path, subject, reason, advice);
            }
        }
    }

    /// Reports that a Kubernetes version has expired or expires soon, with the version to which its users are moved.
    fn kubernetes_ends(
        &mut self,
        path: &str,
        subject: &str,
        (has_expired, expires): (bool, Option<Timestamp>),
        to: Option<&str>,
    ) {
        let end = match to {
            Some(to) => format!("are moved to {to}"),
            None => "are stuck".to_owned(),
        };
        if has_expired {
            let reason = format!("It has expired{}: control planes and pools with it {end}.", self.since_text(expires));
            let advice = "Remove it once no Shoot uses it; Gardener refuses that as long as a control plane does.";
            self.find(Rule::Expired, path, subject, reason, advice);
        } else if let Some(expires) = expires.filter(|expires| self.is_soon(*expires)) {
            let reason = format!(
                "It expires in {}; then control planes and pools with it {end}.",
                in_days(expires, self.settings.now)
            );
            let advice = "Tell the owners of shoots with it, or move the expirationDate.";
            self.find(Rule::KubernetesExpiresSoon, path, subject, reason, advice);
        }
    }

    /// Reports and returns minors whose successor is missing although higher minors exist.
    fn minor_gaps(&mut self, catalog: &VersionCatalog<'_>) -> Vec<(u64, u64)> {
        let mut minors: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        for (index, listed) in catalog.kubernetes.iter().enumerate() {
            if let Ok(version) = &listed.version
                && listed.at(self.settings.now) != Classification::Preview
            {
                minors.entry((version.major, version.minor)).or_insert(index);
            }
        }
        let gaps = minors.iter().zip(minors.keys().skip(1));
        let gaps: Vec<_> =
            gaps.filter(|(((major, minor), _), next)| **next != (*major, minor.saturating_add(1))).collect();
        for (((major, minor), index), next) in &gaps {
            let missing = format!("{major}.{}", minor.saturating_add(1));
            let reason = format!(
                "The next minor is {}.{}; of {missing} there is no version that is no preview. Kubernetes goes from minor to \
                 minor: shoots with {major}.{minor} can't be updated, neither by their owners nor by maintenance.",
                next.0, next.1
            );
            let advice = format!("Add a version of {missing}.");
            self.find(Rule::MinorGap, kubernetes_path(**index), format!("Kubernetes {major}.{minor}"), reason, advice);
        }
        gaps.into_iter().map(|((minor, _), _)| *minor).collect()
    }

    /// Reports versions that the measured Gardener rejects in Shoots. A newer Gardener may support them, with rules that
    /// this program does not know.
    fn unmeasured_kubernetes(&mut self, catalog: &VersionCatalog<'_>) {
        for (index, listed) in catalog.kubernetes.iter().enumerate() {
            if !listed.version.as_ref().is_ok_and(is_too_new) {
                continue;
            }
            let advice = "Check that your Gardener supports it before shoots use it.";
            let title = kubernetes_title(listed);
            self.find(Rule::UnmeasuredKubernetes, kubernetes_path(index), title, why_too_new(), advice);
        }
    }

    /// Whether a version expires soon. At the time `expires` itself it has not expired yet, because a stage begins
    /// strictly after its time.
    pub(super) fn is_soon(&self, expires: Timestamp) -> bool {
        let left = expires.duration_since(self.settings.now);
        left >= SignedDuration::ZERO && left <= self.settings.soon
    }

    /// Begins a sentence that the caller completes: `It expires on 2027-03-31. Then`.
    fn end(&self, expires: Option<Timestamp>) -> String {
        match expires {
            Some(expires) if expires >= self.settings.now => format!("It expires on {}. Then", day(expires)),
            expires => format!("It has expired{}. Now", self.since_text(expires)),
        }
    }

    /// ` on 2027-03-31`, where there is a date in the past.
    pub(super) fn since_text(&self, expires: Option<Timestamp>) -> String {
        expires
            .filter(|expires| *expires < self.settings.now)
            .map(|expires| format!(" on {}", day(expires)))
            .unwrap_or_default()
    }

    /// The first moment at which a version is expired, or the present if that is later.
    pub(super) fn moment_of(&self, expires: Option<Timestamp>) -> Timestamp {
        expires.map_or(self.settings.now, |expires| after(expires).max(self.settings.now))
    }
}

/// Why nodes can't be updated in place to a newer version of their image.
fn out_of_reach(image: &ListedImage<'_>, version: &ResolvedVersion<'_>) -> String {
    let Ok(current) = Version::parse(&version.selectable.version) else { return "with inPlaceUpdates".to_owned() };
    let newer = image.versions.iter().filter(|other| other.listed.version.as_ref().is_ok_and(|other| *other > current));
    let minimum = |other: &ListedImageVersion<'_>| {
        let updates = other.entry.in_place_updates.as_ref().filter(|updates| updates.supported)?;
        Some((other.listed.text.to_owned(), updates.min_version_for_update.clone()?))
    };
    let minima: Vec<String> =
        newer.filter_map(minimum).map(|(text, minimum)| format!("{text} can be reached from {minimum} on")).collect();
    match minima.is_empty() {
        true => "with inPlaceUpdates that is no preview and fits them, and there is none".to_owned(),
        false => format!(
            "with inPlaceUpdates that can be reached from {}, and {}",
            version.selectable.version,
            some_of(minima.iter().map(String::as_str))
        ),
    }
}

fn is_at_most(version: &ListedVersion<'_>, other: &ListedVersion<'_>) -> bool {
    matches!((&version.version, &other.version), (Ok(version), Ok(other)) if version <= other)
}

/// The first moment at which a version is expired.
pub(super) fn after(expires: Timestamp) -> Timestamp {
    expires.checked_add(SignedDuration::from_nanos(1)).unwrap_or(expires)
}

pub(super) fn kubernetes_path(index: usize) -> String {
    format!("spec.kubernetes.versions[{index}]")
}

pub(super) fn kubernetes_title(listed: &ListedVersion<'_>) -> String {
    format!("Kubernetes {}", listed.text)
}

/// A text such as `3 days (2027-03-31)`.
pub(super) fn in_days(expires: Timestamp, now: Timestamp) -> String {
    let days = expires.duration_since(now).as_hours() / 24;
    format!("{} ({})", count(usize::try_from(days).unwrap_or_default(), "day"), day(expires))
}

pub(super) fn day(moment: Timestamp) -> String {
    moment.strftime("%F").to_string()
}
