//! `cloudprofile capability`: what depends on a capability or one of its values, and what breaks without it.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::diff;
use crate::cli::evidence::{Answer, MissingInput, no_match};
use crate::cli::exit::{self, Exit, wrong_usage};
use crate::cli::forecast::garden_files::complete;
use crate::cli::forecast::moment;
use crate::cli::landscape::Landscape;
use crate::cli::preview::words::counted;
use crate::cli::table::{Cell, Table, paragraph, some};
use crate::cli::terminal::{ASIDE, BAD, GOOD, HEADING, OutputFormat, json, one_of, print, width};
use decisions::provider::Providers;
use profiles::cloud_profile::validation::FeatureGates;
use profiles::offer::capability_removal::{CapabilityRemoval, NamedCapability, PoolDependence, PoolMachines};
use profiles::offer::lint::Settings;
use profiles::offer::merged;
use runtime::cluster::garden_cluster::GardenCluster;
use runtime::reader::files::name_of;
use wire::api::gardener::{CapabilityDefinition, VersionedShoot};

/// Maximum number of names that a line lists. JSON contains all.
const NAMED: usize = 8;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker cloudprofile capability hypervisorType=gen1 example/cloudprofiles/azure.yaml
  gardener-extension-worker cloudprofile capability hypervisorType profile.yaml --shoots shoots/ -o json
  gardener-extension-worker cloudprofile capability hypervisorType=gen1 --live --context garden

Without it means: the definition, machine types and flavors no longer list it. Machine types and flavors without another value
are removed. docs/how-to/add-or-remove-a-capability.md has the steps in both directions.",
    &[
        (Exit::Findings, "something lists it, and nothing breaks without it"),
        (Exit::Hazard, "without it something is removed or rejected, or gets another image"),
    ]))]
pub(super) struct CapabilityArguments {
    /// Name of the capability, or one of its values, such as hypervisorType=gen1.
    #[arg(value_name = "NAME[=VALUE]")]
    capability: String,
    /// Files or folders with CloudProfiles and NamespacedCloudProfiles, or `-` for standard input.
    #[arg(value_name = "FILE", required_unless_present = "live")]
    files: Vec<PathBuf>,
    /// Files or folders with Shoots and NamespacedCloudProfiles.
    #[arg(long, value_name = "FILE")]
    shoots: Vec<PathBuf>,
    /// Read profiles and Shoots from the garden of the kubeconfig.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    garden: GardenCluster,
    /// Classify versions as of this day or time. Defaults to now.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    at: Option<Timestamp>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json"]), default_value = "table")]
    output: OutputFormat,
}

/// What depends on the capability in a CloudProfile.
struct ProfileDependents<'c> {
    profile: String,
    removal: CapabilityRemoval<'c>,
    namespaced: Vec<NamespacedDependents<'c>>,
    pools: Vec<DependentPool>,
}

/// What depends on the capability in a NamespacedCloudProfile.
struct NamespacedDependents<'c> {
    name: String,
    removal: CapabilityRemoval<'c>,
    /// Whether the NamespacedCloudProfile itself lists it.
    is_listing: bool,
}

/// A pool that depends on the capability.
struct DependentPool {
    shoot: String,
    pool: String,
    machine_type: String,
    image: String,
    dependence: PoolDependence,
}

pub(super) fn run(arguments: &CapabilityArguments, providers: Providers) -> anyhow::Result<Answer> {
    if arguments.garden.is_named() && !arguments.live {
        return Err(wrong_usage("--kubeconfig and --context are for --live"));
    }
    let capability = parse(&arguments.capability)?;
    let settings = Settings {
        now: arguments.at.unwrap_or_else(Timestamp::now),
        soon: SignedDuration::ZERO,
        gates: FeatureGates::default(),
    };
    let mut landscape = read(arguments)?;
    let documents: Vec<Value> = of_kind(&landscape.objects, "CloudProfile").cloned().collect();
    let defining = defining(&documents, capability, landscape.files.evidence.is_complete())?;
    let mut found = Vec::new();
    for document in defining {
        found.push(dependents(document, capability, &mut landscape, settings, providers)?);
    }
    if !landscape.has_users() {
        let unknown = "which Shoots depend on it";
        landscape.files.evidence.not_given(MissingInput { what: "Shoots", flag: "--shoots", unknown });
    }
    if !arguments.live && landscape.files.namespaced().is_empty() {
        let unknown = "which NamespacedCloudProfiles depend on it";
        let what = "NamespacedCloudProfiles";
        landscape.files.evidence.not_given(MissingInput { what, flag: "--shoots", unknown });
    }
    let mut evidence = landscape.files.evidence;
    evidence.evaluated(found.len());
    match arguments.output {
        OutputFormat::Json => print(&json(&json!({
            "schema": "cloudprofile-capability/v1", "evidence": evidence.document(), "capability": capability.name,
            "value": capability.value, "profiles": found.iter().map(document).collect::<Result<Vec<_>, _>>()?,
        }))?)?,
        _ => {
            let texts: Vec<String> =
                found.iter().map(|profile| text(profile, &arguments.capability, width())).collect();
            print(&texts.join("\n"))?;
        }
    }
    let exit = found.iter().map(ProfileDependents::exit).max().unwrap_or(Exit::Done);
    Ok(Answer::new(evidence, exit))
}

fn parse(text: &str) -> anyhow::Result<NamedCapability<'_>> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if name.is_empty() || value.is_some_and(str::is_empty) {
        return Err(wrong_usage("a capability or one of its values is expected, such as hypervisorType=gen1"));
    }
    Ok(NamedCapability { name, value })
}

fn read(arguments: &CapabilityArguments) -> anyhow::Result<Landscape> {
    let mut landscape = Landscape::empty();
    landscape.add_files(&arguments.files);
    if arguments.live {
        landscape.add_garden(&arguments.garden)?;
    }
    for path in &arguments.shoots {
        let before = landscape.objects.len();
        landscape.add_files(std::slice::from_ref(path));
        if landscape.objects.len() == before && landscape.files.evidence.is_complete() {
            landscape.files.evidence.unread_text(format!("{}: no Shoot in it", name_of(path)));
        }
    }
    Ok(landscape)
}

fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

/// The CloudProfiles that define the capability. A name that none of them defines is an error, unless inputs are missing.
fn defining<'d>(
    documents: &'d [Value],
    capability: NamedCapability<'_>,
    is_complete: bool,
) -> anyhow::Result<Vec<&'d Value>> {
    if documents.is_empty() && is_complete {
        bail!("no CloudProfile found");
    }
    let mut defining = Vec::new();
    let mut known = Vec::new();
    for document in documents {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let spec = profiles::offer::profile::spec_of(document).with_context(|| format!("CloudProfile {name}: spec"))?;
        let is_meant = |definition: &CapabilityDefinition| {
            let has_value = |value: &str| definition.values.iter().any(|known| known == value);
            definition.name == capability.name && capability.value.is_none_or(has_value)
        };
        if spec.machine_capabilities.iter().any(is_meant) {
            defining.push(document);
        }
        known.extend(spec.machine_capabilities);
    }
    if !defining.is_empty() || !is_complete {
        return Ok(defining);
    }
    let values = known.iter().filter(|definition| definition.name == capability.name).flat_map(|known| &known.values);
    match capability.value {
        Some(value) if known.iter().any(|definition| definition.name == capability.name) => {
            Err(no_match(&format!("value of {}", capability.name), value, values.map(String::as_str)))
        }
        _ => Err(no_match("capability", capability.name, known.iter().map(|definition| definition.name.as_str()))),
    }
}

fn dependents<'c>(
    document: &Value,
    capability: NamedCapability<'c>,
    landscape: &mut Landscape,
    settings: Settings,
    providers: Providers,
) -> anyhow::Result<ProfileDependents<'c>> {
    let profile = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let removal = CapabilityRemoval::of(document, capability, settings, providers)
        .with_context(|| format!("CloudProfile {profile}"))?;
    let mut namespaced = Vec::new();
    for child in of_kind(&landscape.objects, "NamespacedCloudProfile") {
        if child["spec"]["parent"]["name"] == *profile {
            let name = title(child);
            let found = namespaced_dependents(child, document, capability, settings, providers);
            namespaced.push(found.with_context(|| format!("NamespacedCloudProfile {name}"))?);
        }
    }
    let pools = pools(&profile, &removal, &namespaced, landscape, settings.now);
    Ok(ProfileDependents { profile, removal, namespaced, pools })
}

fn title(object: &Value) -> String {
    let [namespace, name] = ["namespace", "name"].map(|member| object["metadata"][member].as_str().unwrap_or_default());
    format!("{namespace}/{name}")
}

fn namespaced_dependents<'c>(
    child: &Value,
    parent: &Value,
    capability: NamedCapability<'c>,
    settings: Settings,
    providers: Providers,
) -> anyhow::Result<NamespacedDependents<'c>> {
    let without = capability.removed_from(child);
    let before = merged(child, parent, providers)?;
    let after = merged(&without, &capability.removed_from(parent), providers)?;
    let removal = CapabilityRemoval::between(&before, &after, capability, settings, providers)?;
    Ok(NamespacedDependents { name: title(child), removal, is_listing: without != *child })
}

/// The pools that depend on the capability, by the profile that their Shoot uses.
fn pools(
    profile: &str,
    removal: &CapabilityRemoval<'_>,
    namespaced: &[NamespacedDependents<'_>],
    landscape: &mut Landscape,
    now: Timestamp,
) -> Vec<DependentPool> {
    let profiles = landscape.profiles();
    let mut found = Vec::new();
    let mut unevaluated = Vec::new();
    for given in landscape.files.shoots() {
        let mut shoot = given.state.shoot.clone();
        let reference = crate::cli::forecast::garden_files::reference(&shoot);
        let child = namespaced.iter().find(|child| child.name == reference);
        let removal = match child {
            Some(child) => &child.removal,
            None if reference == profile => removal,
            None => {
                if reference.contains('/') && given.profile(&profiles).is_none() {
                    unevaluated
                        .push(format!("Shoot {}: NamespacedCloudProfile {reference:?} is not given", shoot.title()));
                }
                continue;
            }
        };
        if let Some((_, spec)) = given.profile(&profiles)
            && let Err(error) = complete(&mut shoot, spec, now)
        {
            unevaluated.push(format!("{}: Shoot {}: {error}", given.source, shoot.title()));
            continue;
        }
        found.extend(pools_of(&shoot, removal));
    }
    unevaluated.into_iter().for_each(|error| landscape.files.evidence.unevaluated(error));
    found
}

fn pools_of(shoot: &VersionedShoot, removal: &CapabilityRemoval<'_>) -> Vec<DependentPool> {
    let with_image = shoot.spec.provider.workers.iter().filter_map(|pool| Some((pool, pool.machine.image.as_ref()?)));
    let with_image: Vec<_> = with_image.collect();
    let machines: Vec<PoolMachines<'_>> = with_image
        .iter()
        .map(|(pool, image)| PoolMachines {
            region: &shoot.spec.region,
            machine_type: &pool.machine.machine_type,
            image: &image.name,
            version: &image.version,
        })
        .collect();
    let dependences = removal.pools(&machines).into_iter().zip(with_image);
    let dependent = dependences.filter(|(dependence, _)| *dependence != PoolDependence::default());
    let pools = dependent.map(|(dependence, (pool, image))| DependentPool {
        shoot: shoot.title(),
        pool: pool.name.clone(),
        machine_type: pool.machine.machine_type.clone(),
        image: format!("{} {}", image.name, image.version),
        dependence,
    });
    pools.collect()
}

impl DependentPool {
    fn why(&self) -> &'static str {
        match (self.dependence.by_machine_type, self.dependence.by_flavor) {
            (true, true) => "machine type and image list it",
            (true, false) => "the machine type lists it",
            (false, true) => "the image lists it",
            (false, false) => "its image is chosen by it",
        }
    }
}

impl ProfileDependents<'_> {
    fn exit(&self) -> Exit {
        let breaks = |removal: &CapabilityRemoval<'_>| {
            let diff = &removal.diff;
            !diff.refused.is_empty()
                || !diff.machine_types.removed.is_empty()
                || diff.versions.iter().any(|version| version.after.is_none())
                || diff.combinations.iter().any(|change| change.effect.takes_something())
        };
        let removals = self.namespaced.iter().map(|child| &child.removal).chain([&self.removal]);
        if removals.into_iter().any(breaks) {
            return Exit::Hazard;
        }
        let is_listed = !self.removal.machine_types.is_empty()
            || !self.removal.versions.is_empty()
            || self.namespaced.iter().any(|child| child.is_listing);
        if is_listed { Exit::Findings } else { Exit::Done }
    }
}

fn document(found: &ProfileDependents<'_>) -> anyhow::Result<Value> {
    let mut namespaced = Vec::new();
    for child in &found.namespaced {
        namespaced.push(json!({
            "name": child.name, "lists": child.is_listing, "machineTypes": child.removal.machine_types,
            "versions": child.removal.versions, "without": diff::total(&child.removal.diff),
        }));
    }
    let pool = |pool: &DependentPool| {
        let mut document = json!({
            "shoot": pool.shoot, "pool": pool.pool, "machineType": pool.machine_type, "image": pool.image,
            "why": pool.why(),
        });
        if let Some(loss) = pool.dependence.loss {
            document["loss"] = loss.text().into();
        }
        document
    };
    let diff = &found.removal.diff;
    let removed = diff.versions.iter().filter(|version| version.after.is_none());
    let without = json!({
        "summary": diff::total(diff),
        "machineTypes": diff.machine_types.removed,
        "versions": removed.map(|version| format!("{} {}", version.image, version.version)).collect::<Vec<_>>(),
        "refused": diff.refused.iter().map(|finding| &finding.reason).collect::<Vec<_>>(),
        "combinations": serde_json::to_value(&diff.combinations)?,
    });
    Ok(json!({
        "profile": found.profile, "machineTypes": found.removal.machine_types, "versions": found.removal.versions,
        "namespacedCloudProfiles": namespaced, "pools": found.pools.iter().map(pool).collect::<Vec<_>>(),
        "without": without,
    }))
}

fn text(found: &ProfileDependents<'_>, capability: &str, width: usize) -> String {
    let removal = &found.removal;
    let counts = [
        counted(removal.machine_types.len() as u64, "machine type"),
        counted(removal.versions.len() as u64, "image version"),
        counted(found.namespaced.iter().filter(|child| child.is_listing).count() as u64, "NamespacedCloudProfile"),
        counted(found.pools.len() as u64, "pool"),
    ];
    let headline = format!("{}: {capability}: {} depend on it.", found.profile, counts.join(", "));
    let mut text = paragraph(&headline, HEADING, 0, width);
    if !removal.machine_types.is_empty() {
        let line = format!("Machine types that list it: {}", some(&removal.machine_types, NAMED));
        text.push_str(&paragraph(&line, ASIDE, 2, width));
    }
    if !removal.versions.is_empty() {
        let versions: Vec<String> = removal
            .versions
            .iter()
            .map(|known| format!("{} {} ({} of {})", known.image, known.version, known.listing, known.flavors))
            .collect();
        let line = format!("Versions with flavors that list it: {}", some(&versions, NAMED));
        text.push_str(&paragraph(&line, ASIDE, 2, width));
    }
    text.push_str(&namespaced_text(found, width));
    text.push_str(&pools_text(found, width));
    text.push('\n');
    text.push_str(&paragraph("Without it:", HEADING, 0, width));
    text.push_str(&diff::text(&removal.diff, width));
    text
}

fn namespaced_text(found: &ProfileDependents<'_>, width: usize) -> String {
    if found.namespaced.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["NAMESPACEDCLOUDPROFILE", "LISTS IT", "WITHOUT IT"]);
    for child in &found.namespaced {
        let lists = if child.is_listing { "yes" } else { "no" };
        table.row([child.name.as_str().into(), lists.into(), diff::total(&child.removal.diff).into()]);
    }
    table.render(2, width)
}

fn pools_text(found: &ProfileDependents<'_>, width: usize) -> String {
    if found.pools.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["SHOOT", "POOL", "MACHINE TYPE", "IMAGE", "WHY", "WITHOUT IT"]);
    for pool in &found.pools {
        let loss = match pool.dependence.loss {
            Some(loss) => Cell::styled(loss.text(), BAD),
            None => Cell::styled("the same image", GOOD),
        };
        table.row([
            pool.shoot.as_str().into(),
            pool.pool.as_str().into(),
            pool.machine_type.as_str().into(),
            pool.image.as_str().into(),
            pool.why().into(),
            loss,
        ]);
    }
    table.render(2, width)
}
