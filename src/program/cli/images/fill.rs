//! `images fill`: writes locked images into both halves of CloudProfiles.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::input::{CatalogueArguments, lock, profiles};
use crate::cli::cloudprofile::diff::text;
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit, wrong_usage};
use crate::cli::forecast::moment;
use crate::cli::table::{printable, some};
use crate::cli::terminal::{OutputFormat, complain, complain_in_lines, json, one_of, print, width, yaml_in_place_of};
use decisions::provider::Providers;
use profiles::images::fill::{FillError, FillSettings, Filled, fill};
use profiles::images::lock::Lock;
use profiles::images::supersede::{Supersede, Superseded};
use wire::capabilities::Classification;

/// Maximum number of regions that a message lists.
const NAMED: usize = 6;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images fill --lock images.lock example/images/profiles/aws.yaml > aws.yaml
  gardener-extension-worker images fill --lock images.lock --image-version 2002.1.0 --classification supported profiles/
  gardener-extension-worker images fill --lock images.lock --classification supported --supersede --expire +48h profiles/
  gardener-extension-worker images fill --source example/images/release-2002.1 --where variant=gardener_prod profiles/

Profiles are printed to stdout as YAML, and the comparison to stderr. -o json prints both in one document. Without --replace,
no profile is printed if a machine type would lose or change its image. The order and comments of a file with one
profile stay.",
    &[(Exit::Findings, "filled, but a flavor has no image in a region, or fits no machine"),
      (Exit::Hazard, "filled, but machine types get another image for the same version")]))]
pub(super) struct FillArguments {
    /// Files or folders with CloudProfiles. Each profile receives the images of its cloud.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Lock with the images. By default, each flavor receives the newest image of the sources.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    catalogue: CatalogueArguments,
    /// Only fill in this version. Repeatable.
    #[arg(long, value_name = "VERSION")]
    image_version: Vec<String>,
    /// Stage of versions that are new to a profile.
    #[arg(long, value_enum, default_value_t = Stage::Preview)]
    classification: Stage,
    /// Deprecate the supported versions of the same minor version that a new supported version replaces, or the next older
    /// supported one.
    #[arg(long)]
    supersede: bool,
    /// When the replaced versions expire: a day, a time, or a number of hours or days such as +48h, with --supersede.
    #[arg(long, value_name = "DATE", requires = "supersede")]
    expire: Option<String>,
    /// Replace images of existing versions, so that new nodes differ from running ones.
    #[arg(long)]
    replace: bool,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["yaml", "json"]), default_value = "yaml")]
    output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    Preview,
    Supported,
}

pub(super) fn run(arguments: &FillArguments, providers: Providers) -> anyhow::Result<Reply> {
    let now = arguments.catalogue.now();
    let mut evidence = Evidence::of("image");
    let lock = match (&arguments.lock, arguments.catalogue.is_empty()) {
        (Some(path), true) => lock(path, false)?,
        (None, false) => {
            let known = arguments.catalogue.read()?;
            if let Some(problem) = known.evidence.problems().next() {
                bail!("{problem}");
            }
            let mut lock = Lock::default();
            lock.add(&known.resolved_flavors()?, now);
            evidence.join(known.evidence.clone());
            lock
        }
        _ => return Err(wrong_usage("name either --lock or --source (see --help)")),
    };
    let settings = FillSettings {
        now,
        classification: match arguments.classification {
            Stage::Preview => Classification::Preview,
            Stage::Supported => Classification::Supported,
        },
        versions: arguments.image_version.clone(),
        replace: arguments.replace,
        supersede: supersede(arguments, now)?,
    };
    let mut all = Vec::new();
    // Fills all profiles or none, because a release must be complete.
    for file in profiles(&arguments.files, &mut evidence)? {
        let filled = fill(&file.document, &lock, &settings, providers);
        if let Err(FillError::AnotherImage(diff)) = &filled {
            complain_in_lines(text(diff, width()).trim_end());
        }
        all.push((file.source.clone(), file.text, filled.context(file.source)?));
    }
    if arguments.output == OutputFormat::Json {
        let profiles: Vec<Value> = all.iter().map(|(source, _, filled)| document(source, filled)).collect();
        print(&json(&json!({
            "schema": "images-fill/v1", "evidence": evidence.document(), "profiles": profiles,
        }))?)?;
    } else {
        all.iter().for_each(|(source, _, filled)| report(source, filled));
        let mut texts = Vec::new();
        for (_, text, filled) in &all {
            let text = yaml_in_place_of(text.as_deref(), &filled.profile)?;
            texts.push(text.strip_prefix("---\n").map_or_else(|| text.clone(), str::to_owned));
        }
        print(&texts.join("---\n"))?;
    }
    let exit = all.iter().map(|(_, _, filled)| exit_of(filled)).max().unwrap_or(Exit::Done);
    Ok(Reply::new(evidence, exit))
}

/// What happens to replaced versions.
fn supersede(arguments: &FillArguments, now: Timestamp) -> anyhow::Result<Supersede> {
    if !arguments.supersede {
        return Ok(Supersede::No);
    }
    if arguments.classification != Stage::Supported {
        return Err(wrong_usage("--supersede requires --classification supported"));
    }
    let Some(text) = &arguments.expire else { return Ok(Supersede::Deprecate) };
    let time = expiration(text, now).map_err(|problem| wrong_usage(format!("--expire: {problem}")))?;
    if time <= now {
        return Err(wrong_usage("--expire: the time is in the past"));
    }
    Ok(Supersede::Expire(time))
}

/// Parses a time, or hours and days from now.
fn expiration(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let Some(span) = text.strip_prefix('+') else { return moment(text) };
    let number = |unit: char| span.strip_suffix(unit).and_then(|number| number.parse::<u16>().ok());
    let hours = number('h').map(i64::from).or_else(|| number('d').map(|days| i64::from(days) * 24));
    let hours = hours.ok_or("a number of hours or days is expected, such as +48h or +2d")?;
    now.checked_add(SignedDuration::from_hours(hours)).map_err(|_| "the time is too late".to_owned())
}

/// JSON document of a filled profile.
fn document(source: &str, filled: &Filled) -> Value {
    let added = filled.diff.versions.iter().filter(|change| change.before.is_none()).filter_map(|change| {
        let stage = change.after.as_ref()?.classification.word();
        Some(json!({"image": change.image, "version": change.version, "stage": stage}))
    });
    let missing = filled.missing.iter().map(|(flavor, regions)| json!({"flavor": flavor, "regions": regions}));
    let left_out = filled.left_out.iter().map(|(flavor, reason)| json!({"flavor": flavor, "reason": reason}));
    let superseded = filled
        .superseded
        .iter()
        .map(|old| json!({"image": old.image, "version": old.version, "by": old.by, "expires": old.expires}));
    json!({
        "file": source, "cloudProfile": filled.profile, "added": added.collect::<Vec<_>>(),
        "combinations": filled.diff.combinations, "compared": filled.diff.compared,
        "missing": missing.collect::<Vec<_>>(), "leftOut": left_out.collect::<Vec<_>>(),
        "superseded": superseded.collect::<Vec<_>>(),
    })
}

/// Prints the added images and the missing ones.
fn report(source: &str, filled: &Filled) {
    complain_in_lines(&format!("{}: {}", printable(source), text(&filled.diff, width()).trim_end()));
    for (flavor, regions) in &filled.missing {
        complain(&format!("{source}: {flavor} has no image in {}", some(regions, NAMED)));
    }
    for Superseded { image, version, by, expires } in &filled.superseded {
        let end = expires.map(|time| format!(", and expires at {time}")).unwrap_or_default();
        complain(&format!("{source}: {image} {version} is deprecated because of {by}{end}"));
    }
    for (flavor, reason) in &filled.left_out {
        complain(&format!("{source}: {flavor} is left out: {reason}"));
    }
}

fn exit_of(filled: &Filled) -> Exit {
    let is_whole = filled.missing.is_empty() && filled.left_out.is_empty();
    match (filled.diff.is_hazardous(), is_whole) {
        (true, _) => Exit::Hazard,
        (false, false) => Exit::Findings,
        (false, true) => Exit::Done,
    }
}
