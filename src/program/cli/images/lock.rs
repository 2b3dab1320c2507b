//! `images lock` and `images update`: adding flavors to a lock and updating them.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::input::{self, CatalogueArguments, Known};
use super::written::{change_json, changes_text, write_lock};
use crate::cli::evidence::{Evidence, Reply, no_match};
use crate::cli::exit::{self, Exit};
use crate::cli::preview::words::counted;
use crate::cli::terminal::{OutputFormat, json, one_of, print, width};
use crate::cli::whole_file::Update;
use profiles::images::lock::{Change, Lock, UpdatePolicy};
use profiles::images::resolution::Resolved;

/// Arguments of both commands that select the lock and the output.
#[derive(Debug, Args)]
struct Target {
    /// File with the lock.
    #[arg(long, value_name = "FILE", default_value = "images.lock")]
    lock: PathBuf,
    /// Only show the changes, without writing the lock.
    #[arg(long)]
    dry_run: bool,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images lock --source example/images/release-2001.2
  gardener-extension-worker images lock --source eu-central-1=describe-images.json --lookups lookups.yaml --dry-run

The lock is a YAML file for version control. It is written atomically.",
    &[(Exit::Findings, "flavors were added")]))]
pub(super) struct LockArguments {
    #[command(flatten)]
    catalogue: CatalogueArguments,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images update --source example/images/release-2002.1 --dry-run
  gardener-extension-worker images update --policy security --source eu-central-1=describe-images.json --lookups lookups.yaml
  gardener-extension-worker images update --image gardenlinux --source images/",
    &[(Exit::Findings, "flavors were updated or added")]))]
pub(super) struct UpdateArguments {
    #[command(flatten)]
    catalogue: CatalogueArguments,
    #[command(flatten)]
    target: Target,
    /// Scope of the update. `security` selects newer images of the locked versions, and `all` also the newest version.
    #[arg(long, value_enum, default_value_t = Policy::All)]
    policy: Policy,
    /// Only update this image.
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Newer images and the newest version.
    All,
    /// Newer images of the locked versions.
    Security,
}

pub(super) fn lock(arguments: &LockArguments) -> anyhow::Result<Reply> {
    let LockArguments { catalogue, target } = arguments;
    changed(catalogue, target, true, None, |lock, known, resolved| lock.add(resolved, known.policy.now))
}

pub(super) fn update(arguments: &UpdateArguments) -> anyhow::Result<Reply> {
    let UpdateArguments { catalogue, target, policy, image } = arguments;
    let policy = match policy {
        Policy::All => UpdatePolicy::All,
        Policy::Security => UpdatePolicy::Security,
    };
    // Updating requires a lock, so the file must exist.
    changed(catalogue, target, false, image.as_deref(), |lock, known, resolved| {
        lock.update(resolved, &known.catalogue, policy, image.as_deref(), known.policy.now)
    })
}

fn changed(
    catalogue: &CatalogueArguments,
    target: &Target,
    may_be_new: bool,
    image: Option<&str>,
    change: impl FnOnce(&mut Lock, &Known, &[Resolved<'_>]) -> Vec<Change>,
) -> anyhow::Result<Reply> {
    let known = catalogue.read_images()?;
    if let Some(problem) = known.evidence.problems().next() {
        // Only complete listings may change a lock.
        bail!("{problem}");
    }
    let resolved = known.resolved_flavors()?;
    if let Some(image) = image
        && resolved.iter().all(|resolved| resolved.key.image != image)
    {
        return Err(no_match("image", image, resolved.iter().map(|resolved| resolved.key.image.as_str())));
    }
    let update = if target.dry_run { None } else { Some(Update::begin(&target.lock)?) };
    let mut lock = input::lock(&target.lock, may_be_new)?;
    known.ensure_separate(&resolved, &lock)?;
    let changes = change(&mut lock, &known, &resolved);
    if let (Some(update), false) = (update, changes.is_empty()) {
        write_lock(update, &lock)?;
    }
    let name = target.lock.display().to_string();
    finish(&changes, &name, target.dry_run, target.output, known.evidence.clone())
}

/// Prints the changes of a lock.
pub(super) fn finish(
    changes: &[Change],
    name: &str,
    dry_run: bool,
    output: OutputFormat,
    evidence: Evidence,
) -> anyhow::Result<Reply> {
    if output == OutputFormat::Json {
        let changes: Vec<Value> = changes.iter().map(change_json).collect();
        print(&json(&json!({
            "schema": "images-lock/v1", "evidence": evidence.document(), "written": !changes.is_empty() && !dry_run,
            "changes": changes,
        }))?)?;
    } else {
        let what = match (changes.len() as u64, dry_run) {
            (0, _) => format!("{name}: nothing changes."),
            (count, true) => format!("{name} would change: {}.", counted(count, "image")),
            (count, false) => format!("{name}: {} written.", counted(count, "image")),
        };
        print(&changes_text(changes, &what, width()))?;
    }
    Ok(Reply::new(evidence, if changes.is_empty() { Exit::Done } else { Exit::Findings }))
}
