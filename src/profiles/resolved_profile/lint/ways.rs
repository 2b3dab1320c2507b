//! The image versions to which maintenance moves pools when theirs expires, by the rules of `forecast`
//! (docs/versions.md).

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

use super::Lint;
use crate::resolved_profile::resolution::{ResolvedVersion, TypeGroup};
use crate::versions::candidates::FittingVersions;
use crate::versions::catalog::{ListedImage, ListedImageVersion, VersionCatalog};
use crate::versions::maintenance::{ForcedImage, forced_image};
use wire::api::bounded_text::enumerated;
use wire::api::gardener::{MachineImage, VersionedMachine, VersionedPool};
use wire::api::gotext::version::Version;

/// Result of a forced update of pools whose version has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Destination {
    /// The version at this position of the resolution.
    Version(usize),
    /// Maintenance chooses the version at this position, and the API server rejects it.
    Refused(usize),
    /// No version is available: they are stuck.
    Nowhere,
}

/// How a pool updates its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeUpdate {
    /// They are replaced.
    Rolling,
    /// They are updated in place.
    InPlace,
}

/// The destination of some machine types whose version has expired.
pub(super) struct Way<'a> {
    pub(super) to: Destination,
    pub(super) nodes: NodeUpdate,
    pub(super) groups: Vec<&'a TypeGroup<'a>>,
}

/// Machine types that can have the same versions of an image.
struct PoolKind<'a, 'c> {
    groups: Vec<&'a TypeGroup<'a>>,
    pool: VersionedPool,
    fitting: FittingVersions<'c>,
}

/// The pools that a profile allows, as far as maintenance distinguishes them.
pub(super) struct PoolKinds<'a, 'c> {
    pub(super) catalog: &'c VersionCatalog<'c>,
    by_image: BTreeMap<&'c str, Vec<PoolKind<'a, 'c>>>,
    /// All possible kubelet versions.
    kubelets: Vec<Version>,
}

impl<'a, 'c> PoolKinds<'a, 'c> {
    pub(super) fn of(lint: &Lint<'a>, catalog: &'c VersionCatalog<'c>) -> Self {
        let mut by_image: BTreeMap<&'c str, Vec<PoolKind<'a, 'c>>> = BTreeMap::new();
        for image in &catalog.images {
            let name = image.image.name.as_str();
            if by_image.contains_key(name) {
                continue;
            }
            let mut kinds = Vec::new();
            for group in lint.usable_groups() {
                add(&mut kinds, group, name, catalog);
            }
            by_image.insert(name, kinds);
        }
        let kubelets = catalog.kubernetes.iter().filter_map(|listed| listed.version.as_ref().ok()).cloned();
        Self { catalog, by_image, kubelets: kubelets.collect() }
    }

    /// The image of a version.
    pub(super) fn image(&self, version: &ResolvedVersion<'_>) -> Option<&'c ListedImage<'c>> {
        self.catalog.images.iter().find(|image| image.image.name == version.selectable.image)
    }

    /// The kubelet versions to distinguish for an image: only one if no version depends on it.
    fn kubelets(&self, image: &ListedImage<'_>) -> Vec<Version> {
        let depends = image.versions.iter().any(|version| version.kubelet.is_some());
        if depends { self.kubelets.clone() } else { vec![Version::ZERO.clone()] }
    }
}

/// Adds machine types to the kind with the same versions, or as a new kind.
fn add<'a, 'c>(
    kinds: &mut Vec<PoolKind<'a, 'c>>,
    group: &'a TypeGroup<'a>,
    image: &str,
    catalog: &'c VersionCatalog<'c>,
) {
    let Some(machine_type) = group.types.iter().find(|machine_type| machine_type.usable) else { return };
    let image = MachineImage { name: image.to_owned(), version: String::new() };
    let machine = VersionedMachine {
        machine_type: machine_type.name.clone(),
        image: Some(image),
        architecture: Some(group.architecture.to_owned()),
    };
    let pool = VersionedPool { machine, ..VersionedPool::default() };
    let Ok(fitting) = FittingVersions::new(catalog, &pool) else { return };
    let has_same = |kind: &&mut PoolKind<'_, '_>| {
        let known = kind.fitting.versions();
        let new = fitting.versions();
        kind.pool.machine.architecture == pool.machine.architecture
            && known.len() == new.len()
            && known.iter().zip(new).all(|(known, new)| std::ptr::eq(*known, *new))
    };
    match kinds.iter_mut().find(has_same) {
        Some(known) => known.groups.push(group),
        None => kinds.push(PoolKind { groups: vec![group], pool, fitting }),
    }
}

impl<'a> Lint<'a> {
    /// Destinations of forced updates from a version at a moment, each with its machine types.
    pub(super) fn ways(
        &self,
        kinds: &PoolKinds<'a, '_>,
        from: &ResolvedVersion<'_>,
        moment: Timestamp,
    ) -> Vec<Way<'a>> {
        let (Some(image), Some(of_image)) = (kinds.image(from), kinds.by_image.get(from.selectable.image.as_str()))
        else {
            return Vec::new();
        };
        let mut ways: Vec<Way<'a>> = Vec::new();
        for kubelet in kinds.kubelets(image) {
            for kind in of_image {
                for nodes in [NodeUpdate::Rolling, NodeUpdate::InPlace] {
                    let pool = pool_at(&kind.pool, &from.selectable.version, nodes);
                    let Some(to) = self.destination(&pool, kind, &kubelet, (kinds.catalog, moment)) else { continue };
                    put(&mut ways, to, nodes, &kind.groups);
                }
            }
        }
        ways.sort_by_key(|way| (way.nodes, way.to));
        ways
    }

    /// The destination of a pool; `None` if no pool can have the version, or the pool keeps it.
    fn destination(
        &self,
        pool: &VersionedPool,
        kind: &PoolKind<'_, '_>,
        kubelet: &Version,
        (catalog, moment): (&VersionCatalog<'_>, Timestamp),
    ) -> Option<Destination> {
        let MachineImage { name, version } = pool.machine.image.as_ref()?;
        let in_place_from = pool.is_updated_in_place().then_some(version.as_str());
        let is_version = |known: &ListedImageVersion<'_>| known.listed.text == version;
        if !kind.fitting.at(kubelet, in_place_from).any(is_version) {
            return None;
        }
        let position = |to: &str| {
            let mut versions = self.resolution.versions().iter();
            versions.position(|known| known.selectable.image == *name && known.selectable.version == to)
        };
        match forced_image(pool, &kind.fitting, kubelet, catalog, moment) {
            ForcedImage::Stays | ForcedImage::Unreadable => None,
            ForcedImage::Stuck => Some(Destination::Nowhere),
            ForcedImage::Moves(to) => position(&to).map(Destination::Version),
            ForcedImage::Refused(to) => position(&to).map(Destination::Refused),
        }
    }

    /// Ends a sentence with the effect of the expiration on pools: `; pools with it are moved to 2.0.0`.
    pub(super) fn way_text(&self, ways: &[Way<'_>]) -> String {
        let of = |nodes: NodeUpdate| ways.iter().filter(|way| way.nodes == nodes).collect::<Vec<_>>();
        let rolling = of(NodeUpdate::Rolling);
        let in_place = of(NodeUpdate::InPlace);
        let rolling = self.ends_text(&rolling);
        let in_place = self.ends_text(&in_place);
        match (rolling, in_place) {
            (None, None) => String::new(),
            (Some(text), None) => format!("; pools with it {text}"),
            (None, Some(text)) => format!("; pools with it that are updated in place {text}"),
            (Some(rolling), Some(in_place)) if rolling == in_place => format!("; pools with it {rolling}"),
            (Some(rolling), Some(in_place)) => {
                format!("; pools with it {rolling}, but those that are updated in place {in_place}")
            }
        }
    }

    /// `are moved to 1.1.0 and 2.0.0, by machine type, and some are stuck`.
    fn ends_text(&self, ways: &[&Way<'_>]) -> Option<String> {
        let target = |way: &&Way<'_>| match way.to {
            Destination::Version(position) => {
                Some(self.resolution.versions().get(position)?.selectable.version.as_str())
            }
            Destination::Refused(_) | Destination::Nowhere => None,
        };
        let targets: Vec<&str> = ways.iter().filter_map(target).collect();
        let is_somebody_stuck = targets.len() < ways.len();
        let depending = if ways.len() < 2 { "" } else { depending(ways) };
        match (targets.is_empty(), is_somebody_stuck) {
            (true, false) => None,
            (true, true) => Some("are stuck".to_owned()),
            (false, false) => Some(format!("are moved to {}{depending}", enumerated(&targets))),
            (false, true) => Some(format!("are moved to {}{depending}, and some are stuck", enumerated(&targets))),
        }
    }
}

/// The pool with this version and update strategy.
fn pool_at(pool: &VersionedPool, version: &str, nodes: NodeUpdate) -> VersionedPool {
    let mut pool = pool.clone();
    if let Some(image) = &mut pool.machine.image {
        image.version = version.to_owned();
    }
    pool.update_strategy = match nodes {
        NodeUpdate::Rolling => "AutoRollingUpdate".to_owned(),
        NodeUpdate::InPlace => "AutoInPlaceUpdate".to_owned(),
    };
    pool
}

fn put<'a>(ways: &mut Vec<Way<'a>>, to: Destination, nodes: NodeUpdate, groups: &[&'a TypeGroup<'a>]) {
    let known = ways.iter_mut().position(|way| (way.to, way.nodes) == (to, nodes));
    let way = match known.and_then(|known| ways.get_mut(known)) {
        Some(way) => way,
        None => {
            ways.push(Way { to, nodes, groups: groups.to_vec() });
            return;
        }
    };
    for group in groups {
        if way.groups.iter().all(|known| known.number != group.number) {
            way.groups.push(group);
        }
    }
}

/// Whether the destination depends on the machine type or on the Kubernetes version.
fn depending(ways: &[&Way<'_>]) -> &'static str {
    let mut numbers: Vec<usize> = ways.iter().flat_map(|way| &way.groups).map(|group| group.number).collect();
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() == all { ", by machine type" } else { ", by Kubernetes version" }
}
