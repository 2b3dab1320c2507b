//! `images unused`: unused versions and images.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;

use super::input::{CatalogueArguments, lock, profiles};
use crate::cli::evidence::{MissingInput, Reply};
use crate::cli::exit::{self, Exit, wrong_usage};
use crate::cli::landscape::Landscape;
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use decisions::provider::Providers;
use profiles::images::unused::{Unused, unused};
use profiles::resolved_profile::profile::Profile;
use runtime::cluster::garden_cluster::GardenCluster;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images unused example/images/profiles/aws.yaml --users example/images/landscape.yaml
  gardener-extension-worker images unused aws.yaml --users shoots/ --users workers/ --source images/ --lock images.lock

Users are Shoots, NamespacedCloudProfiles, Workers with recorded images, machine classes, ShootStates and all other objects that
name a version or an image. A Shoot that maintenance will update to a version within a year is also a user of that version.
Pass all objects of the landscape, because the command only finds users in these files. Unreadable files, truncated lists and
states that can't be unpacked abort the command. With --live and without Workers in --users, it is unknown what is unused.",
    &[(Exit::Findings, "a version or an image is unused")]))]
pub(super) struct UnusedArguments {
    /// File with one CloudProfile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Files or folders with the objects of the landscape.
    #[arg(long, value_name = "FILE", required_unless_present = "live")]
    users: Vec<PathBuf>,
    /// Read Shoots and NamespacedCloudProfiles from the garden of the kubeconfig. Workers and machine classes are in
    /// seeds, so add them with --users.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    garden: GardenCluster,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// Locks whose images are treated as used.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &UnusedArguments, providers: Providers) -> anyhow::Result<Reply> {
    if arguments.garden.is_named() && !arguments.live {
        return Err(wrong_usage("--kubeconfig and --context are for --live"));
    }
    let known = arguments.catalogue.read()?;
    let mut evidence = known.evidence.clone();
    let lock = arguments.lock.as_deref().map(|path| lock(path, false)).transpose()?;
    let mut files_of_profiles = profiles(std::slice::from_ref(&arguments.file), &mut evidence)?;
    let (Some(file), true) = (files_of_profiles.pop(), files_of_profiles.is_empty()) else {
        anyhow::bail!("{}: several CloudProfiles in it; one is expected", arguments.file.display());
    };
    let profile = Profile::read(file.document, providers).context(file.source)?;
    let mut landscape = landscape(arguments)?;
    let now = known.policy.now;
    landscape.files.add(&arguments.file, &profile.document);
    let planned = landscape.planned_versions(&landscape.profiles(), profile.name(), now);
    let mut found = unused(&profile, &landscape.objects, &planned, &known.catalogue, lock.as_ref(), now)?;
    if landscape.lacks_workers() {
        withhold(&mut found);
        evidence.not_given(MissingInput {
            what: "Workers",
            flag: "--users",
            unknown: "which versions and images are in use by machines that have not rolled yet",
        });
    }
    evidence.join(landscape.files.evidence);
    evidence.evaluated(landscape.objects.len());
    if arguments.catalogue.is_empty() {
        evidence.not_given(MissingInput {
            what: "listings of images",
            flag: "--source",
            unknown: "unused images at the cloud",
        });
    }
    if arguments.output == OutputFormat::Json {
        let mut document = serde_json::to_value(&found)?;
        document["schema"] = "images-unused/v1".into();
        document["profile"] = json!(profile.name());
        print(&json(&evidence.attach(document))?)?;
    } else {
        print(&text(profile.name(), &found, width()))?;
    }
    let all_needed = found.images.is_empty() && found.versions.iter().all(|version| !version.is_unused());
    Ok(Reply::new(evidence, if all_needed { Exit::Done } else { Exit::Findings }))
}

/// Reports nothing as unused, because a Worker may use it.
fn withhold(found: &mut Unused) {
    for version in &mut found.versions {
        if version.is_unused() {
            version.kept = Some("unknown: no Workers given".to_owned());
            version.images.clear();
        }
    }
    found.images.clear();
}

/// Reads all objects that may use images. Fails if any of them is missing.
fn landscape(arguments: &UnusedArguments) -> anyhow::Result<Landscape> {
    let mut landscape = Landscape::empty();
    landscape.add_files(&arguments.users);
    if arguments.live {
        landscape.add_garden(&arguments.garden)?;
    }
    if let Some(unread) = landscape.files.evidence.unread_inputs().next() {
        bail!("{unread}");
    }
    Ok(landscape)
}

fn text(profile: &str, found: &Unused, width: usize) -> String {
    let heading = format!("{profile}: versions and who uses them, in {}", counted(found.documents as u64, "object"));
    let mut text = paragraph(&heading, HEADING, 0, width);
    let mut table = Table::new(["IMAGE", "STAGE", ">USERS", "NEEDED BY"]);
    for version in &found.versions {
        let by = match (version.is_unused(), &version.kept) {
            (true, _) if version.images.is_empty() => Cell::styled("unused", GOOD),
            (true, _) => Cell::styled(format!("unused, and so is {}", version.images.join(", ")), GOOD),
            (false, Some(kept)) if version.users == 0 => Cell::styled(kept.as_str(), ASIDE),
            (false, _) => Cell::styled(version.examples.join(", "), ASIDE),
        };
        table.row([
            format!("{} {}", version.image, version.version).into(),
            version.stage.word().into(),
            version.users.to_string().into(),
            by,
        ]);
    }
    text.push_str(&table.render(2, width));
    if !found.images.is_empty() {
        text.push_str(&paragraph("Images that no profile, lock or user names:", HEADING, 0, width));
        let mut table = Table::new(["ID", "REGION", "NAME"]);
        for image in &found.images {
            table.row([image.id.as_str().into(), image.region.as_str().into(), image.name.as_str().into()]);
        }
        text.push_str(&table.render(2, width));
    }
    text
}
