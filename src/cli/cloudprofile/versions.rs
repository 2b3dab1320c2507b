//! `cloudprofile versions`: which versions there are, in which stage, who uses them, and which can go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::api::gardener::{NamespacedCloudProfile, ProfileSpec, VersionedShoot};
use crate::api::gotext::version::Version;
use crate::capabilities::Classification;
use crate::cli::exit::{self, Exit};
use crate::cli::forecast::garden_files::{GardenFiles, ProfileKey, complete};
use crate::cli::forecast::moment;
use crate::cli::table::{Cell, Table};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING, OutputFormat, complain, json, one_of, print, width};
use crate::cloud_profile::change::{children, uses};
use crate::versions::catalog::{ListedVersion, VersionCatalog};

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile versions example/versions/cloudprofile.yaml --shoots example/versions/shoots.yaml

Without --shoots nobody is known to use a version. docs/versions.md explains what Gardener refuses.",
    &[]))]
pub(super) struct VersionsArguments {
    /// Files or folders with CloudProfiles and NamespacedCloudProfiles; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// File or folder with Shoots, and with NamespacedCloudProfiles.
    #[arg(long, value_name = "FILE")]
    shoots: Vec<PathBuf>,
    /// The moment: a day or a time. Now by default.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// How to print.
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

/// A version with those who use it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionUse {
    /// The image; absent for Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    version: String,
    stage: &'static str,
    /// The next stage and its begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
    shoots: usize,
    pools: usize,
    /// Why it can't be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

#[derive(Serialize)]
struct Next {
    stage: &'static str,
    from: Timestamp,
}

pub(super) fn run(arguments: &VersionsArguments) -> anyhow::Result<Exit> {
    let mut files = GardenFiles::read(&arguments.files)?;
    let asked = files.own_profiles();
    files.join(GardenFiles::read_some(&arguments.shoots, "Shoot", |found| !found.shoots().is_empty())?);
    if asked.is_empty() && files.errors.is_empty() {
        files.errors.push("no CloudProfile found".to_owned());
    }
    files.errors.iter().for_each(|error| complain(error));
    let now = arguments.at.unwrap_or_else(Timestamp::now);
    let profiles = files.replaced_by(&GardenFiles::default());
    let listed: Vec<ProfileVersions> = asked.iter().filter_map(|key| versions(key, &profiles, &files, now)).collect();
    match arguments.output {
        OutputFormat::Json => {
            print(&json(&serde_json::json!({"schema": "cloudprofile-versions/v1", "at": now, "profiles": listed}))?)?;
        }
        _ => print(&listed.iter().map(|profile| text(profile, width())).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(if files.errors.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Who uses which version: shoots by name, and how many pools.
type Uses<'a> = BTreeMap<(Option<&'a str>, &'a str), (BTreeSet<String>, usize)>;

fn versions(
    key: &ProfileKey,
    profiles: &BTreeMap<ProfileKey, ProfileSpec>,
    files: &GardenFiles,
    now: Timestamp,
) -> Option<ProfileVersions> {
    let (name, spec) = (key.reference.as_str(), profiles.get(key)?);
    let children = children(name, files.namespaced());
    let mut shoots = Vec::new();
    for given in files.shoots() {
        let own = given.profile(profiles);
        if own.is_some_and(|(own, _)| own == key) || uses(&given.state.shoot, name, &children) {
            let mut shoot = given.state.shoot.clone();
            // A version that is left open is the one that it would get. What it can't get, it does not use.
            let _ = complete(&mut shoot, own.map_or(spec, |(_, own)| own), now);
            shoots.push(shoot);
        }
    }
    let used = used(&shoots);
    let catalog = VersionCatalog::new(name, spec);
    let mut versions = Vec::new();
    for (index, listed) in catalog.kubernetes.iter().enumerate() {
        let kept = newest(&catalog.kubernetes, index);
        versions.push(version_use(None, listed, &used, &children, kept, now));
    }
    for image in &catalog.images {
        for version in &image.versions {
            let kept = (image.versions.len() == 1).then(|| "an image needs a version".to_owned());
            versions.push(version_use(Some(&image.image.name), &version.listed, &used, &children, kept, now));
        }
    }
    Some(ProfileVersions { profile: name.to_owned(), versions })
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

/// Why the newest Kubernetes version has to stay: the one that is the newest without it must not expire.
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

fn version_use(
    image: Option<&str>,
    listed: &ListedVersion<'_>,
    used: &Uses<'_>,
    children: &[&NamespacedCloudProfile],
    kept: Option<String>,
    now: Timestamp,
) -> VersionUse {
    let (shoots, pools) =
        used.get(&(image, listed.text)).map(|(shoots, pools)| (shoots.len(), *pools)).unwrap_or_default();
    let overrides = |child: &&&NamespacedCloudProfile| match image {
        None => child
            .spec
            .kubernetes
            .iter()
            .flat_map(|kubernetes| &kubernetes.versions)
            .any(|version| version.version == listed.text),
        Some(name) => child
            .spec
            .machine_images
            .iter()
            .any(|image| image.name == name && image.versions.iter().any(|version| version.version == listed.text)),
    };
    let child = children.iter().find(overrides).map(|child| {
        format!("NamespacedCloudProfile {} changes it", child.metadata.name.as_deref().unwrap_or_default())
    });
    let by_shoots = (shoots > 0)
        .then(|| if shoots == 1 { "1 shoot uses it".to_owned() } else { format!("{shoots} shoots use it") });
    let next = listed.stages().filter_map(|(from, stage)| Some((from.filter(|from| *from >= now)?, stage)));
    let next = next.min_by_key(|(from, _)| *from).map(|(from, stage)| Next { stage: stage.word(), from });
    VersionUse {
        image: image.map(str::to_owned),
        version: listed.text.to_owned(),
        stage: listed.at(now).word(),
        next,
        shoots,
        pools,
        kept: by_shoots.or(child).or(kept),
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
            .map(|next| format!("{} {}", next.stage, next.from.strftime("%F")))
            .unwrap_or_default();
        let kept = match &version.kept {
            None => Cell::styled("yes", GOOD),
            Some(why) => Cell::styled(format!("no: {why}"), ASIDE),
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
