//! The versions that maintenance moves pools and control planes to when their version expires, and versions without
//! such a successor (docs/versions.md).

use std::collections::BTreeMap;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Lint;
use super::finding::{Rule, count, machine_types, some_of};
use crate::api::bounded_text::enumerated;
use crate::capabilities::Classification;
use crate::offer::resolution::{ResolvedVersion, TypeGroup};
use crate::versions::catalog::{ListedVersion, VersionCatalog};
use crate::versions::target::{Candidate, NoTarget, Subject, target};

/// The forced successor of an expired version as its position in the resolution, or `None`, with the machine types that
/// it applies to.
pub(super) type Way<'a> = (Option<usize>, Vec<&'a TypeGroup<'a>>);

impl<'a> Lint<'a> {
    /// The forced successors of a version at a time, each with the machine types that it applies to.
    pub(super) fn ways(
        &self,
        catalog: &VersionCatalog<'_>,
        from: &ResolvedVersion<'_>,
        moment: Timestamp,
    ) -> Vec<Way<'a>> {
        let versions = self.resolution.versions();
        let Some(image) = catalog.images.iter().find(|image| image.image.name == from.offered.image) else {
            return Vec::new();
        };
        let of_image: Vec<(usize, Candidate<'_>)> = (0..)
            .zip(versions)
            .filter(|(_, version)| version.offered.image == from.offered.image)
            .zip(&image.versions)
            .map(|((position, _), version)| {
                (position, Candidate { listed: &version.listed, stage: version.listed.at(moment) })
            })
            .collect();
        let mut by_fitting: BTreeMap<Vec<bool>, Vec<&'a TypeGroup<'a>>> = BTreeMap::new();
        for group in self.usable_groups().filter(|group| self.resolution.admits(from.offered, group)) {
            let fits = |(position, _): &(usize, Candidate<'_>)| {
                versions.get(*position).is_some_and(|version| self.resolution.admits(version.offered, group))
            };
            by_fitting.entry(of_image.iter().map(fits).collect()).or_default().push(group);
        }
        let mut ways: Vec<Way<'a>> = Vec::new();
        for (fits, groups) in by_fitting {
            let fitting: Vec<Candidate<'_>> =
                of_image.iter().zip(fits).filter(|(_, fits)| *fits).map(|((_, candidate), _)| *candidate).collect();
            let subject = Subject::Image { name: &from.offered.image, strategy: image.strategy() };
            let Some(found) = forced(subject, &fitting, &from.offered.version) else { continue };
            let to = found.and_then(|to| of_image.iter().find(|(_, candidate)| candidate.listed.text == to));
            let to = to.map(|(position, _)| *position);
            match ways.iter_mut().find(|(known, _)| *known == to) {
                Some((_, known)) => known.extend(groups),
                None => ways.push((to, groups)),
            }
        }
        ways
    }

    /// Reports the effects on pools when their image version expires.
    pub(super) fn expired_images(&mut self, catalog: &VersionCatalog<'_>) {
        for version in self.resolution.versions() {
            let Some(expires) = version.offered.expires else { continue };
            let moment = after(expires).max(self.settings.now);
            let ways = self.ways(catalog, version, moment);
            let of_all = ways.len() == 1;
            for (to, groups) in ways {
                match to.and_then(|to| self.resolution.versions().get(to)) {
                    None => self.stuck_image(catalog, version, expires, (of_all, &groups)),
                    Some(to) if !version.offered.is_expired() => self.without_image_then(version, expires, to, &groups),
                    Some(_) => {}
                }
            }
        }
    }

    fn stuck_image(
        &mut self,
        catalog: &VersionCatalog<'_>,
        version: &ResolvedVersion<'_>,
        expires: Timestamp,
        (of_all, groups): (bool, &[&TypeGroup<'_>]),
    ) {
        let image = &version.offered.image;
        let Some(image) = catalog.images.iter().find(|listed| listed.image.name == *image) else { return };
        let names: Vec<&str> = groups.iter().flat_map(|group| group.names()).collect();
        let whose = if of_all { "it".to_owned() } else { machine_types(&names) };
        let strategy = image.strategy();
        let wanted = match strategy {
            "patch" => "a newer version of the same major",
            "minor" => "a newer version",
            _ => "a newer, unexpired version",
        };
        let others = image.versions.iter().map(|other| &other.listed);
        let others = others.filter(|other| other.at(after(expires)) != Classification::Preview);
        let newest = others.filter_map(|other| Some((other.version.as_ref().ok()?, other.text))).max();
        let is_newest = newest.is_some_and(|(_, text)| text == version.offered.version);
        let rule = if is_newest && !version.offered.is_expired() { Rule::LatestExpires } else { Rule::Stuck };
        let reason = format!(
            "{} pools with {whose} are stuck: with updateStrategy {strategy} they need {wanted} that is no preview and fits them, and \
             there is none.",
            self.end(expires)
        );
        let advice = "Add its successor, or move the expirationDate; else owners have to choose another image.";
        self.find(rule, &version.offered.path, version.offered.title(), reason, advice);
    }

    /// Reports pools that are moved to a version for which the provider has no image.
    fn without_image_then(
        &mut self,
        from: &ResolvedVersion<'_>,
        expires: Timestamp,
        to: &ResolvedVersion<'_>,
        groups: &[&TypeGroup<'_>],
    ) {
        let gets = |version: &ResolvedVersion<'_>, group: &TypeGroup<'_>, region: Option<&str>| {
            let mut there = version.availability.iter().filter(|available| {
                available.regions.is_empty() || region.is_none_or(|region| available.regions.contains(&region))
            });
            there.any(|available| self.resolution.chosen(group, available).is_some())
        };
        let regions: Vec<Option<&str>> = match from.offered.is_regional() {
            true => self.offer().regions.iter().map(|region| Some(region.as_str())).collect(),
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
        let place = if there.is_empty() { String::new() } else { format!(" in {}", some_of(there)) };
        let reason = format!(
            "{} pools with {} are moved to {}, of which the provider config has no image for them{place}: they get no machines \
             any more.",
            self.end(expires),
            machine_types(&lost),
            to.offered.version
        );
        let advice = "Add the image before, or move the expirationDate.";
        self.find(Rule::ForcedIntoNothing, &from.offered.path, from.offered.title(), reason, advice);
    }

    /// Reports the effects on control planes when their version expires, and minors from which no update is possible.
    pub(super) fn kubernetes(&mut self, catalog: &VersionCatalog<'_>) {
        let gaps = self.minor_gaps(catalog);
        for (index, listed) in catalog.kubernetes.iter().enumerate() {
            let Some(expires) = listed.expires() else { continue };
            let moment = after(expires).max(self.settings.now);
            let candidates: Vec<Candidate<'_>> =
                catalog.kubernetes.iter().map(|listed| Candidate { listed, stage: listed.at(moment) }).collect();
            let Some(to) = forced(Subject::Kubernetes, &candidates, listed.text) else { continue };
            let (path, subject) = (kubernetes_path(index), kubernetes_title(listed));
            if self.is_soon(expires) {
                let after = match to {
                    Some(to) => format!("control planes and pools with it are then moved to {to}"),
                    None => "control planes and pools with it are stuck then".to_owned(),
                };
                let reason = format!("It expires in {}; {after}.", in_days(expires, self.settings.now));
                let advice = "Tell the owners of shoots with it, or move the expirationDate.";
                self.find(Rule::KubernetesExpiresSoon, path.clone(), subject.clone(), reason, advice);
            }
            // Gardener itself rejects an expiration of the newest version.
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

    /// Minors whose next minor is missing although there are higher ones.
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
                 minor: shoots with {major}.{minor} can't go on, neither by their owners nor by maintenance.",
                next.0, next.1
            );
            let advice = format!("Add a version of {missing}.");
            self.find(Rule::MinorGap, kubernetes_path(**index), format!("Kubernetes {major}.{minor}"), reason, advice);
        }
        gaps.into_iter().map(|((minor, _), _)| *minor).collect()
    }

    /// Whether a version expires soon. At the time `expires` itself it has not expired yet, because a stage begins
    /// strictly after its time.
    pub(super) fn is_soon(&self, expires: Timestamp) -> bool {
        let left = expires.duration_since(self.settings.now);
        left >= SignedDuration::ZERO && left <= self.settings.soon
    }

    /// The start of a text such as `It expires on 2027-03-31. Then`.
    fn end(&self, expires: Timestamp) -> String {
        let (verb, then) = if expires < self.settings.now { ("has expired", "Now") } else { ("expires", "Then") };
        format!("It {verb} on {}. {then}", day(expires))
    }

    /// The end of a text about the successor of an expired version, such as `; pools with it are moved to 2.0.0`.
    pub(super) fn way_text(
        &self,
        catalog: &VersionCatalog<'_>,
        version: &ResolvedVersion<'_>,
        expires: Timestamp,
    ) -> String {
        let ways = self.ways(catalog, version, after(expires).max(self.settings.now));
        let targets = ways.iter().filter_map(|(to, _)| self.resolution.versions().get((*to)?));
        let targets: Vec<&str> = targets.map(|to| to.offered.version.as_str()).collect();
        let is_somebody_stuck = ways.iter().any(|(to, _)| to.is_none());
        match (targets.as_slice(), is_somebody_stuck) {
            ([], false) => String::new(),
            ([], true) => "; pools with it are stuck".to_owned(),
            (targets, stuck) => {
                let depending = if targets.len() > 1 { ", by machine type" } else { "" };
                let rest = if stuck { ", and some are stuck" } else { "" };
                format!("; pools with it are moved to {}{depending}{rest}", enumerated(targets))
            }
        }
    }
}

/// The forced successor of an expired version; the outer `None` if the list is invalid, which is another finding.
fn forced<'l>(subject: Subject<'_>, candidates: &[Candidate<'l>], current: &str) -> Option<Option<&'l str>> {
    match target(subject, candidates, current, true) {
        Ok(to) => Some(to),
        Err(NoTarget::EndOfLife { .. } | NoTarget::Nothing { .. }) => Some(None),
        Err(_) => None,
    }
}

fn is_at_most(version: &ListedVersion<'_>, other: &ListedVersion<'_>) -> bool {
    matches!((&version.version, &other.version), (Ok(version), Ok(other)) if version <= other)
}

/// The first moment at which a version is expired.
fn after(expires: Timestamp) -> Timestamp {
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
