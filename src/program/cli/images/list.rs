//! `images list`: the images of all sources.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::input::{CatalogueArguments, Selection, lock};
use super::written::{key_json, locked_json};
use crate::cli::evidence::Answer;
use crate::cli::exit::{self, Exit};
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{ASIDE, BAD, GOOD, OutputFormat, json, one_of, print, width};
use profiles::images::record::ImageState;
use profiles::images::resolution::{Candidate, Resolved, Verdict};

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images list --source example/images/release-2002.1 --where variant=gardener_prod
  gardener-extension-worker images list --source eu-central-1=describe-images.json --lookups lookups.yaml
  gardener-extension-worker images list --source images/ --lock images.lock -o json",
    &[]))]
pub(super) struct ListArguments {
    #[command(flatten)]
    catalogue: CatalogueArguments,
    #[command(flatten)]
    selection: Selection,
    /// Lock to check for images that no source contains.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &ListArguments) -> anyhow::Result<Answer> {
    let known = arguments.catalogue.read_images()?;
    let locked = arguments.lock.as_deref().map(|path| lock(path, false)).transpose()?.unwrap_or_default();
    let mut resolved = known.resolved()?;
    let meant: usize = resolved.iter().map(|resolved| resolved.candidates.len()).sum();
    arguments.selection.retain(&mut resolved)?;
    let images = known.catalogue.images().len();
    let gone: Vec<_> = locked.gone(&known.catalogue).collect();
    if arguments.output == OutputFormat::Json {
        let gone: Vec<Value> = gone
            .iter()
            .map(|(key, image)| {
                let mut document = key_json(key);
                document["locked"] = locked_json(image);
                document
            })
            .collect();
        let flavors: Vec<Value> = resolved.iter().map(flavor_json).collect();
        print(&json(&json!({
            "schema": "images-list/v1", "evidence": known.evidence.document(), "images": images, "flavors": flavors,
            "gone": gone,
        }))?)?;
        return Ok(Answer::new(known.evidence.clone(), Exit::Done));
    }
    let mut table = Table::new(["IMAGE", "FLAVOR", "CLOUD", "REGION", "ID", "CREATED", "WHAT"]);
    for (resolved, candidate) in
        resolved.iter().flat_map(|one| one.candidates.iter().map(move |candidate| (one, candidate)))
    {
        let what = match &candidate.verdict {
            Verdict::Chosen => Cell::styled("newest", GOOD),
            Verdict::ChosenOwner => Cell::styled("newest of the first owner", GOOD),
            Verdict::Rejected(reason) => Cell::styled(reason.to_string(), BAD),
            other => Cell::styled(other.to_string(), ASIDE),
        };
        table.row([
            format!("{} {}", resolved.key.image, resolved.key.version).into(),
            resolved.key.flavor_text().into(),
            resolved.key.cloud().into(),
            resolved.key.place().into(),
            candidate.image.reference.value.as_str().into(),
            created(candidate).into(),
            what,
        ]);
    }
    for (key, image) in &gone {
        table.row([
            format!("{} {}", key.image, key.version).into(),
            key.flavor_text().into(),
            key.cloud().into(),
            key.place().into(),
            image.reference.value.as_str().into(),
            image.created.map(|created| created.strftime("%F").to_string()).unwrap_or_default().into(),
            Cell::styled("locked, and gone", BAD),
        ]);
    }
    let rest = match images.saturating_sub(meant) {
        0 => String::new(),
        rest => format!("; {} of no flavor", rest),
    };
    let total = format!("{}{rest}.", counted(images as u64, "image"));
    print(&format!("{}\n{}", table.render(0, width()), paragraph(&total, ASIDE, 0, width())))?;
    Ok(Answer::new(known.evidence.clone(), Exit::Done))
}

/// Day on which an image was created.
pub(super) fn created(candidate: &Candidate<'_>) -> String {
    candidate.image.created.map_or_else(|| "-".to_owned(), |created| created.strftime("%F").to_string())
}

/// A flavor with its images, as JSON.
pub(super) fn flavor_json(resolved: &Resolved<'_>) -> Value {
    let candidate = |candidate: &Candidate<'_>| {
        let image = candidate.image;
        json!({
            "id": image.reference.value, "name": image.name, "owner": image.owner, "created": image.created,
            "deprecated": image.deprecated, "available": image.state == ImageState::Available,
            "chosen": candidate.verdict.is_chosen(), "verdict": candidate.verdict.to_string(),
        })
    };
    let mut document = key_json(&resolved.key);
    document["candidates"] = resolved.candidates.iter().map(candidate).collect::<Vec<_>>().into();
    document
}
