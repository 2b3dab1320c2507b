//! `cloudprofile versions`: versions with their stages and users, and whether they can be removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::evidence::{MissingInput, Reply};
use crate::cli::exit::{self, Exit, wrong_usage};
use crate::cli::forecast::garden_files::{ProfileKey, complete};
use crate::cli::forecast::moment;
use crate::cli::landscape::Landscape;
use crate::cli::table::{Cell, Table};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use profiles::cloud_profile::change::{children, uses};
use profiles::images::version_users::{ImageVersionStage, VersionUsers, kept_image_version};
use profiles::versions::catalog::{ListedImageVersion, ListedVersion, VersionCatalog};
use runtime::cluster::garden_cluster::GardenCluster;
use runtime::reader::files::name_of;
use wire::api::gardener::{ProfileSpec, VersionedShoot};
use wire::api::gotext::version::Version;
use wire::capabilities::Classification;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile versions example/versions/cloudprofile.yaml --shoots example/versions/shoots.yaml

A version can be removed when no Shoot, NamespacedCloudProfile, Worker or ShootState uses it, and no maintenance within a year
updates a Shoot to it. Without --shoots or --live, the answer is unknown. With --live, it is unknown for images without
Workers in --shoots. docs/versions.md explains what Gardener rejects.",
    &[]))]
pub(super) struct VersionsArguments {
    /// Files or folders with CloudProfiles and NamespacedCloudProfiles, or `-` for standard input.
    #[arg(value_name = "FILE", required_unless_present = "live")]
    files: Vec<PathBuf>,
    /// Files or folders with objects that use versions, such as Shoots, NamespacedCloudProfiles, Workers with recorded
    /// images, and ShootStates.
    #[arg(long, value_name = "FILE")]
    shoots: Vec<PathBuf>,
    /// Read profiles and Shoots from the garden of the kubeconfig. Workers are in seeds, so add them with --shoots.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    garden: GardenCluster,
    /// Day or time to evaluate. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

/// The versions of a profile.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileVersions {
    profile: String,
    versions: Vec<VersionUse>,
}

/// A version with its users.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionUse {
    /// The image. Absent for Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    version: String,
    stage: &'static str,
    /// The next stage and its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
    shoots: usize,
    pools: usize,
    /// Number of users, including Shoots that maintenance updates to the version.
    users: usize,
    /// Whether the version can be removed.
    removable: Removable,
    /// Reason why the version can't be removed, or why that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

/// Whether a version can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Removable {
    Yes,
    No,
    Unknown,
}

#[derive(Serialize)]
struct Next {
    stage: &'static str,
    from: Timestamp,
}

pub(super) fn run(arguments: &VersionsArguments) -> anyhow::Result<Reply> {
    if arguments.garden.is_named() && !arguments.live {
        return Err(wrong_usage("--kubeconfig and --context are for --live"));
    }
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let mut landscape = Landscape::empty();
    landscape.add_files(&arguments.files);
    if arguments.live {
        landscape.add_garden(&arguments.garden)?;
    }
    let selected = landscape.files.own_profiles();
    for path in &arguments.shoots {
        let before = landscape.objects.len();
        landscape.add_files(std::slice::from_ref(path));
        if landscape.objects.len() == before && landscape.files.evidence.is_complete() {
            landscape.files.evidence.unread_text(format!("{}: no Shoot in it", name_of(path)));
        }
    }
    if selected.is_empty() && landscape.files.evidence.is_complete() {
        bail!("no CloudProfile found");
    }
    let profiles = landscape.profiles();
    let mut listed = Vec::new();
    for key in &selected {
        listed.extend(versions(key, &profiles, &mut landscape, now)?);
    }
    let has_users = landscape.has_users();
    let lacks_workers = landscape.lacks_workers();
    let mut evidence = landscape.files.evidence;
    if !has_users {
        evidence.not_given(MissingInput { what: "Shoots", flag: "--shoots", unknown: "which versions can be removed" });
    }
    if lacks_workers {
        evidence.not_given(MissingInput {
            what: "Workers",
            flag: "--shoots",
            unknown: "which image versions are in use by machines that have not rolled yet",
        });
    }
    evidence.evaluated(listed.len());
    match arguments.output {
        OutputFormat::Json => print(&json(&serde_json::json!({
            "schema": "cloudprofile-versions/v1", "evidence": evidence.document(), "at": now, "profiles": listed,
        }))?)?,
        _ => print(&listed.iter().map(|profile| text(profile, width())).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(Reply::new(evidence, Exit::Done))
}

/// Users of each version, as names of shoots and a number of pools.
type Uses<'a> = BTreeMap<(Option<&'a str>, &'a str), (BTreeSet<String>, usize)>;

/// The versions of a profile with their users, or `None` if the profile can't be merged.
fn versions(
    key: &ProfileKey,
    profiles: &BTreeMap<ProfileKey, ProfileSpec>,
    landscape: &mut Landscape,
    now: Timestamp,
) -> anyhow::Result<Option<ProfileVersions>> {
    let name = key.reference.as_str();
    let planned = landscape.planned_versions(profiles, name, now);
    let Some(spec) = profiles.get(key) else { return Ok(None) };
    let children = children(name, landscape.files.namespaced());
    let mut shoots = Vec::new();
    for given in landscape.files.shoots() {
        let own = given.profile(profiles);
        if own.is_some_and(|(own, _)| own == key) || uses(&given.state.shoot, name, &children) {
            let mut shoot = given.state.shoot.clone();
            // Uses the default for a version that the Shoot omits. Without a default, the Shoot uses no version.
            let _ = complete(&mut shoot, own.map_or(spec, |(_, own)| own), now);
            shoots.push(shoot);
        }
    }
    let catalog = VersionCatalog::new(name, spec);
    let images = catalog.images.iter().flat_map(|image| {
        image.versions.iter().map(|version| (Some(image.image.name.clone()), version.listed.text.to_owned()))
    });
    let kubernetes = catalog.kubernetes.iter().map(|listed| (None, listed.text.to_owned()));
    let mut users = VersionUsers::new(images.chain(kubernetes));
    users.add_objects(name, &spec.provider_type, &landscape.objects)?;
    planned.iter().for_each(|planned| users.plan(planned));
    let unknown = unknown_users(landscape);
    let unknown_image = unknown.or(landscape.lacks_workers().then_some("no Workers given"));
    let usage = Usage { by_shoots: used(&shoots), users, unknown, unknown_image, now };
    let mut versions = Vec::new();
    for (index, listed) in catalog.kubernetes.iter().enumerate() {
        versions.push(usage.of(None, listed, newest(&catalog.kubernetes, index)));
    }
    for image in &catalog.images {
        let stages: Vec<ImageVersionStage> = image.versions.iter().map(|version| stage(version, now)).collect();
        for (index, version) in image.versions.iter().enumerate() {
            let kept = kept_image_version(&stages, index, now);
            versions.push(usage.of(Some(&image.image.name), &version.listed, kept));
        }
    }
    Ok(Some(ProfileVersions { profile: name.to_owned(), versions }))
}

/// Reason why users may be missing from the answer.
fn unknown_users(landscape: &Landscape) -> Option<&'static str> {
    if !landscape.files.evidence.is_complete() {
        Some("not all inputs could be read")
    } else if !landscape.has_users() {
        Some("no Shoots given")
    } else {
        None
    }
}

fn stage(version: &ListedImageVersion<'_>, now: Timestamp) -> ImageVersionStage {
    ImageVersionStage {
        version: version.listed.text.to_owned(),
        stage: version.listed.at(now),
        expires: version.listed.expires(),
        architectures: version.entry.architectures.clone(),
    }
}

fn used(shoots: &[VersionedShoot]) -> Uses<'_> {
    let mut used: Uses<'_> = BTreeMap::new();
    for shoot in shoots {
        let control_plane = shoot.spec.kubernetes.version.as_deref().unwrap_or_default();
        used.entry((None, control_plane)).or_default().0.insert(shoot.title());
        for pool in &shoot.spec.provider.workers {
            let image = pool.machine.image.as_ref().map(|image| (Some(image.name.as_str()), image.version.as_str()));
            let own = pool.kubernetes.version.as_deref().map(|version| (None, version));
            for key in [image, own].into_iter().flatten() {
                let (shoots, pools) = used.entry(key).or_default();
                shoots.insert(shoot.title());
                *pools += 1;
            }
        }
    }
    used
}

/// Reason why the newest Kubernetes version must stay. The newest remaining version must not expire.
fn newest(versions: &[ListedVersion<'_>], index: usize) -> Option<String> {
    let newest = |without: Option<usize>| {
        let others = versions.iter().enumerate().filter(|(other, _)| Some(*other) != without);
        others.max_by_key(|(_, listed)| listed.version.clone().unwrap_or_else(|_| Version::ZERO.clone()))
    };
    let is_newest = newest(None).is_some_and(|(position, _)| position == index);
    match newest(Some(index)) {
        _ if !is_newest => None,
        None => Some("a profile needs a Kubernetes version".to_owned()),
        Some((_, next)) => next.expires().map(|_| format!("{} would be the newest, and it expires", next.text)),
    }
}

/// Known users of a profile's versions.
struct Usage<'a> {
    by_shoots: Uses<'a>,
    users: VersionUsers,
    /// Reason why users may be missing.
    unknown: Option<&'static str>,
    /// Reason why users of images may be missing.
    unknown_image: Option<&'static str>,
    now: Timestamp,
}

impl Usage<'_> {
    /// `kept` is the reason why the version must stay even without users.
    fn of(&self, image: Option<&str>, listed: &ListedVersion<'_>, kept: Option<String>) -> VersionUse {
        let of_shoots = self.by_shoots.get(&(image, listed.text));
        let (shoots, pools) = of_shoots.map(|(shoots, pools)| (shoots.len(), *pools)).unwrap_or_default();
        let found = self.users.of(image, listed.text);
        let unknown = if image.is_some() { self.unknown_image } else { self.unknown };
        let (removable, kept) = match (shoots, found.users, kept, unknown) {
            (1, ..) => (Removable::No, Some("1 shoot uses it".to_owned())),
            (2.., ..) => (Removable::No, Some(format!("{shoots} shoots use it"))),
            (_, 1.., ..) => (Removable::No, Some(format!("used by {}", found.examples.join("; ")))),
            (_, _, Some(kept), _) => (Removable::No, Some(kept)),
            (_, _, None, Some(unknown)) => (Removable::Unknown, Some(unknown.to_owned())),
            (_, _, None, None) => (Removable::Yes, None),
        };
        let next = listed.stages().filter_map(|(from, stage)| Some((from.filter(|from| *from >= self.now)?, stage)));
        let next = next.min_by_key(|(from, _)| *from).map(|(from, stage)| Next { stage: stage.word(), from });
        VersionUse {
            image: image.map(str::to_owned),
            version: listed.text.to_owned(),
            stage: listed.at(self.now).word(),
            next,
            shoots,
            pools,
            users: found.users,
            removable,
            kept,
        }
    }
}

/// A stage that has not begun, as a verb where it has one.
fn next_word(stage: &str) -> &str {
    match Classification::of(stage) {
        Classification::Expired => "expires",
        _ => stage,
    }
}

fn text(profile: &ProfileVersions, width: usize) -> String {
    let mut table = Table::new(["WHAT", "VERSION", "STAGE", "NEXT", ">SHOOTS", ">POOLS", "CAN BE REMOVED"]);
    for version in &profile.versions {
        let style = match Classification::of(version.stage) {
            Classification::Supported => GOOD,
            Classification::Expired | Classification::Unavailable => BAD,
            _ => CAREFUL,
        };
        let next = version
            .next
            .as_ref()
            .map(|next| format!("{} {}", next_word(next.stage), next.from.strftime("%F")))
            .unwrap_or_default();
        let why = version.kept.as_deref().unwrap_or_default();
        let kept = match version.removable {
            Removable::Yes => Cell::styled("yes", GOOD),
            Removable::No => Cell::styled(format!("no: {why}"), ASIDE),
            Removable::Unknown => Cell::styled(format!("unknown: {why}"), CAREFUL),
        };
        table.row([
            version.image.as_deref().unwrap_or("Kubernetes").into(),
            version.version.as_str().into(),
            Cell::styled(version.stage, style),
            next.into(),
            version.shoots.to_string().into(),
            version.pools.to_string().into(),
            kept,
        ]);
    }
    format!("{HEADING}{}{HEADING:#}\n{}", crate::cli::table::printable(&profile.profile), table.render(2, width))
}
