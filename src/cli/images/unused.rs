//! `images unused`: which versions and images are unused.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::input::{CatalogueArguments, documents, lock, profiles};
use crate::cli::exit::{self, Exit};
use crate::cli::input::files;
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use crate::images::unused::{Unused, unused};
use crate::offer::profile::Profile;
use crate::provider::Providers;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images unused example/images/profiles/aws.yaml --users example/images/landscape.yaml
  gardener-extension-worker images unused aws.yaml --users shoots/ --users workers/ --source images/ --lock images.lock

Users are Shoots, NamespacedCloudProfiles, Workers with the images that they keep, machine classes, ShootStates and whatever
else names a version or an image. Give all of the landscape: what is not in the files needs nothing. A file that can't be read,
a list that goes on, a state that can't be unpacked end the command without an answer.",
    &[(Exit::Findings, "something is unused")]))]
pub(super) struct UnusedArguments {
    /// File with one CloudProfile.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Files or folders with the objects of the landscape.
    #[arg(long, value_name = "FILE", required = true)]
    users: Vec<PathBuf>,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// Locks need what they name.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// How to print.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &UnusedArguments, providers: Providers) -> anyhow::Result<Exit> {
    let known = arguments.catalogue.read()?;
    let lock = arguments.lock.as_deref().map(|path| lock(path, false)).transpose()?;
    let mut files_of_profiles = profiles(std::slice::from_ref(&arguments.file))?;
    let (Some(file), true) = (files_of_profiles.pop(), files_of_profiles.is_empty()) else {
        anyhow::bail!("{}: several CloudProfiles in it; one is expected", arguments.file.display());
    };
    let profile = Profile::read(file.document, providers).context(file.source)?;
    let mut objects = Vec::new();
    for file in files(&arguments.users)? {
        objects.extend(documents(&file.path)?);
    }
    let found = unused(&profile, objects, &known.catalogue, lock.as_ref(), known.policy.now)?;
    if arguments.output == OutputFormat::Json {
        let mut document = serde_json::to_value(&found)?;
        document["schema"] = "images-unused/v1".into();
        document["profile"] = json!(profile.name());
        print(&json(&document)?)?;
    } else {
        print(&text(profile.name(), &found, width()))?;
    }
    let all_needed = found.images.is_empty() && found.versions.iter().all(|version| !version.is_unused());
    Ok(if all_needed { Exit::Done } else { Exit::Findings })
}

fn text(profile: &str, found: &Unused, width: usize) -> String {
    let heading = format!("{profile}: needs of {}", counted(found.documents as u64, "object"));
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
