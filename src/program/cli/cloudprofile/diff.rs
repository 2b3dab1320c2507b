//! `cloudprofile diff`: the effects of a CloudProfile edit on its users.

use std::path::PathBuf;

use anstyle::Style;
use anyhow::Context;
use clap::Args;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::source::{GardenSource, one};
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit};
use crate::cli::forecast::moment;
use crate::cli::preview::markdown::escaped;
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph, some};
use crate::cli::terminal::{ASIDE, BAD, CAREFUL, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use decisions::provider::Providers;
use decisions::provider::explanation::ImageName;
use profiles::cloud_profile::validation::FeatureGates;
use profiles::resolved_profile::capability_change::CapabilityChange;
use profiles::resolved_profile::diff::{
    CombinationChange, Effect, KubernetesChange, NamesDiff, ProfileDiff, Stage, VersionChange, diff,
};
use profiles::resolved_profile::lint::Settings;
use profiles::resolved_profile::new_types::{NewMachineType, NewestImage};
use wire::capabilities::Classification;

/// Maximum number of names that a table lists. JSON contains all.
const NAMED: usize = 4;
/// Maximum number of rows per section. JSON contains all.
const ROWS: usize = 30;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile diff old.yaml new.yaml
  gardener-extension-worker cloudprofile diff old.yaml new.yaml -o markdown     # for a pull request
  gardener-extension-worker cloudprofile diff --live azure new.yaml --context garden

Use preview --cloudprofile-new to see which nodes of a Worker roll.",
    &[(Exit::Findings, "entries are added, or change their stage"), (Exit::Hazard, "entries are removed or rejected, or get another image for the same version")]))]
pub(super) struct DiffArguments {
    /// File with the current CloudProfile, or `-` for standard input. With --live, its name in the garden.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// File with the changed CloudProfile.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    #[command(flatten)]
    garden: GardenSource,
    /// Classify versions as of this day or time. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json", "markdown"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &DiffArguments, providers: Providers) -> anyhow::Result<Reply> {
    let old = one(&arguments.old, Some(&arguments.garden))?;
    let new = one(&arguments.new, None)?;
    let settings = Settings {
        now: arguments.at.unwrap_or_else(Timestamp::now),
        soon: SignedDuration::ZERO,
        gates: FeatureGates::default(),
    };
    let of_both = || format!("{}, {}", old.source, new.source);
    let diff = diff(&old.document, &new.document, settings, providers).with_context(of_both)?;
    let evidence = Evidence::whole("CloudProfile", 2);
    print(&match arguments.output {
        OutputFormat::Json => json(&evidence.attach(serde_json::to_value(&diff)?))?,
        OutputFormat::Markdown => markdown(&diff),
        _ => text(&diff, width()),
    })?;
    let exit = match &diff {
        diff if diff.is_hazardous() => Exit::Hazard,
        diff if diff.is_empty() => Exit::Done,
        _ => Exit::Findings,
    };
    Ok(Reply::new(evidence, exit))
}

/// A section of the result, as rows for every output format.
struct Section {
    title: &'static str,
    headings: [&'static str; 4],
    style: Style,
    rows: Vec<[String; 4]>,
}

fn sections(diff: &ProfileDiff) -> Vec<Section> {
    const COMBINATION: [&str; 4] = ["IMAGE", "MACHINE TYPES", "BEFORE", "NOW"];
    let of_effect = |effect: Effect, title, style| {
        let changes = diff.combinations.iter().filter(|change| change.effect == effect);
        Section { title, headings: COMBINATION, style, rows: combinations(changes) }
    };
    let names = |heading, title, style, names: &[String]| {
        let rows = names.iter().map(|name| [name.clone(), String::new(), String::new(), String::new()]).collect();
        Section { title, headings: [heading, "", "", ""], style, rows }
    };
    let refused = diff
        .refused
        .iter()
        .map(|finding| [finding.subject.clone(), finding.path.clone(), finding.reason.clone(), finding.advice.clone()]);
    let sections = vec![
        Section {
            title: "Becomes refused",
            headings: ["SUBJECT", "FIELD", "REASON", "WHAT HELPS"],
            style: BAD,
            rows: refused.collect(),
        },
        of_effect(Effect::Vanishes, "No longer available", BAD),
        of_effect(
            Effect::AnotherImage,
            "Another image under the same version: new nodes differ from those that run",
            CAREFUL,
        ),
        of_effect(Effect::OtherMachine, "The same image, another machine: its capabilities differ", CAREFUL),
        Section {
            title: "Capabilities",
            headings: ["CAPABILITY", "CHANGE", "BEFORE", "NOW"],
            style: HEADING,
            rows: diff.capabilities.iter().map(capability).collect(),
        },
        names("MACHINE TYPE", "Removed machine types", BAD, &diff.machine_types.removed),
        names("REGION", "Removed regions", BAD, &diff.regions.removed),
        names("ZONE", "Removed zones", BAD, &diff.zones.removed),
        names("VOLUME TYPE", "Removed volume types", BAD, &diff.volume_types.removed),
        Section {
            title: "New machine types, with their newest images",
            headings: ["MACHINE TYPE", "IMAGE", "", "REFERENCE"],
            style: GOOD,
            rows: diff.new_machine_types.iter().flat_map(new_machine_type).collect(),
        },
        names("REGION", "New regions", GOOD, &diff.regions.added),
        names("ZONE", "New zones", GOOD, &diff.zones.added),
        names("VOLUME TYPE", "New volume types", GOOD, &diff.volume_types.added),
        of_effect(Effect::Appears, "Newly available", GOOD),
        of_effect(Effect::AppearsForExisting, "New images of versions that no new pool can select", HEADING),
        Section {
            title: "Image versions",
            headings: ["IMAGE", "", "BEFORE", "NOW"],
            style: HEADING,
            rows: diff.versions.iter().map(version).collect(),
        },
        Section {
            title: "Kubernetes versions",
            headings: ["VERSION", "", "BEFORE", "NOW"],
            style: HEADING,
            rows: diff.kubernetes.iter().map(kubernetes).collect(),
        },
    ];
    sections.into_iter().filter(|section| !section.rows.is_empty()).collect()
}

/// Groups changes of the same machine types and version in one row. Each region may have its own images.
fn combinations<'a>(changes: impl Iterator<Item = &'a CombinationChange>) -> Vec<[String; 4]> {
    let mut same: Vec<Vec<&CombinationChange>> = Vec::new();
    for change in changes {
        let key =
            |change: &CombinationChange| (change.image.clone(), change.version.clone(), change.machine_types.clone());
        match same.iter_mut().find(|known| known.first().is_some_and(|first| key(first) == key(change))) {
            Some(known) => known.push(change),
            None => same.push(vec![change]),
        }
    }
    same.iter().filter_map(|changes| combination(changes)).collect()
}

fn combination(changes: &[&CombinationChange]) -> Option<[String; 4]> {
    let first = changes.first()?;
    let regions: Vec<String> = changes.iter().flat_map(|change| &change.regions).cloned().collect();
    let regions = if regions.is_empty() { String::new() } else { format!(" in {}", some(&regions, NAMED)) };
    let images = |side: fn(&CombinationChange) -> Option<&ImageName>| {
        let more = changes.len() - 1;
        match side(first) {
            None => "-".to_owned(),
            Some(image) if more == 0 => image.value.clone(),
            Some(image) => format!("{} and {more} more", image.value),
        }
    };
    let [before, after] = [images(|change| change.before.as_ref()), images(|change| change.after.as_ref())];
    let types = some(&first.machine_types, NAMED);
    Some([format!("{} {}", first.image, first.version), format!("{types}{regions}"), before, after])
}

fn capability(CapabilityChange { capability, change, before, after }: &CapabilityChange) -> [String; 4] {
    let [before, after] =
        [before, after].map(|values| if values.is_empty() { "-".to_owned() } else { values.join(", ") });
    [capability.clone(), change.text().to_owned(), before, after]
}

/// One row for each image.
fn new_machine_type(added: &NewMachineType) -> Vec<[String; 4]> {
    if added.images.is_empty() {
        return vec![[added.name.clone(), "no image fits".to_owned(), String::new(), "-".to_owned()]];
    }
    let row = |NewestImage { image, version, reference }: &NewestImage| {
        [added.name.clone(), format!("{image} {version}"), String::new(), reference.value.clone()]
    };
    added.images.iter().map(row).collect()
}

fn version(change: &VersionChange) -> [String; 4] {
    let VersionChange { image, version, before, after } = change;
    [format!("{image} {version}"), String::new(), stage(before.as_ref()), stage(after.as_ref())]
}

fn kubernetes(change: &KubernetesChange) -> [String; 4] {
    let KubernetesChange { version, before, after } = change;
    [version.clone(), String::new(), stage(before.as_ref()), stage(after.as_ref())]
}

fn stage(stage: Option<&Stage>) -> String {
    match stage {
        None => "-".to_owned(),
        Some(Stage { classification, expires: None }) => classification.word().to_owned(),
        Some(Stage { classification: Classification::Expired, expires: Some(expires) }) => {
            format!("expired since {}", expires.strftime("%F"))
        }
        Some(Stage { classification, expires: Some(expires) }) => {
            format!("{} until {}", classification.word(), expires.strftime("%F"))
        }
    }
}

/// Summarizes the differences in one line.
pub(super) fn total(diff: &ProfileDiff) -> String {
    let count = |effect| {
        let of_effect = diff.combinations.iter().filter(|change| change.effect == effect);
        of_effect.map(|change| change.machine_types.len() as u64).sum::<u64>()
    };
    let of_names = |names: &NamesDiff| (names.added.len() + names.removed.len()) as u64;
    let parts = [
        (diff.refused.len() as u64, "error is new", "errors are new"),
        (count(Effect::Vanishes), "combination vanishes", "combinations vanish"),
        (count(Effect::AnotherImage), "combination gets another image", "combinations get another image"),
        (count(Effect::OtherMachine), "combination gets another machine", "combinations get another machine"),
        (count(Effect::Appears), "combination appears", "combinations appear"),
        (
            count(Effect::AppearsForExisting),
            "combination of an expired version appears",
            "combinations of expired versions appear",
        ),
        (diff.capabilities.len() as u64, "capability differs", "capabilities differ"),
        (diff.versions.len() as u64, "image version differs", "image versions differ"),
        (diff.kubernetes.len() as u64, "Kubernetes version differs", "Kubernetes versions differ"),
        (of_names(&diff.machine_types), "machine type is added or removed", "machine types are added or removed"),
        (of_names(&diff.regions), "region is added or removed", "regions are added or removed"),
        (of_names(&diff.zones), "zone is added or removed", "zones are added or removed"),
        (of_names(&diff.volume_types), "volume type is added or removed", "volume types are added or removed"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect();
    let compared = counted(diff.compared as u64, "combination");
    if parts.is_empty() {
        return format!(
            "No difference in images, machine types, capabilities, Kubernetes versions, regions, zones and volume types; {compared} compared."
        );
    }
    format!("{}; {compared} compared.", parts.join(", "))
}

/// Formats the differences as text.
pub(in crate::cli) fn text(diff: &ProfileDiff, width: usize) -> String {
    let mut text = paragraph(&total(diff), HEADING, 0, width);
    for section in sections(diff) {
        text.push('\n');
        text.push_str(&paragraph(section.title, section.style, 0, width));
        let mut table = Table::new(section.headings);
        for row in section.rows.iter().take(ROWS) {
            table.row(row.clone().map(Cell::from));
        }
        text.push_str(&table.render(2, width));
        if let Some(more) = section.rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
            text.push_str(&paragraph(&format!("and {more} more (-o json has all)"), ASIDE, 2, width));
        }
    }
    text
}

fn markdown(diff: &ProfileDiff) -> String {
    let mut text = format!("### CloudProfile diff\n\n**{}**\n", escaped(&total(diff)));
    for section in sections(diff) {
        let columns = section.headings.iter().filter(|heading| !heading.is_empty());
        text.push_str(&format!("\n#### {}\n\n", section.title));
        let headings: Vec<&str> = columns.copied().collect();
        text.push_str(&format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(headings.len())));
        for row in section.rows.iter().take(ROWS) {
            let cells = row.iter().zip(section.headings).filter(|(_, heading)| !heading.is_empty());
            let cells: Vec<String> = cells.map(|(cell, _)| escaped(cell)).collect();
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if let Some(more) = section.rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
            text.push_str(&format!("\n… and {more} more; `-o json` lists all.\n"));
        }
    }
    text
}
