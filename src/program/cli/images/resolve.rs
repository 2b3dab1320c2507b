//! `images resolve`: the image of each flavor, with the reasons.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::input::{CatalogueArguments, Selection, lock, profiles};
use super::list::{created, flavor_json};
use super::machine_templates::machine_templates;
use super::written::change_json;
use crate::cli::evidence::{Evidence, Reply};
use crate::cli::exit::{self, Exit, wrong_usage};
use crate::cli::table::{Cell, Table, paragraph};
use crate::cli::terminal::{
    ASIDE, BAD, CAREFUL, GOOD, HEADING, OutputFormat, one_of, print, print_json_with_items, width,
};
use decisions::provider::Providers;
use profiles::images::lock::Change;
use profiles::images::resolution::{FlavorKey, Resolved, Verdict};
use profiles::images::template_users::TemplateUsers;
use profiles::resolved_profile::profile::Profile;
use runtime::reader::files::files;

#[derive(Debug, Args)]
#[command(after_help = exit::help("\
Examples:
  gardener-extension-worker images resolve --source example/images/release-2002.1 --lock example/images/images.lock
  gardener-extension-worker images resolve --source eu-central-1=describe-images.json --lookups lookups.yaml
  gardener-extension-worker images resolve --source eu-central-1=describe-images.json --lookups lookups.yaml -o capa

-o capa prints an AWSMachineTemplate with a fixed ami.id for each flavor, version and region. The ID is that of the locked image
or, without a lock, of the newest one, and is part of the name. Read the consumers with
kubectl get awsmachinetemplates,machinedeployments,kubeadmcontrolplanes -A -o yaml.",
    &[(Exit::Findings, "a flavor has no usable image, or a newer one than the locked image")]))]
pub(super) struct ResolveArguments {
    #[command(flatten)]
    catalogue: CatalogueArguments,
    #[command(flatten)]
    selection: Selection,
    /// Only include images, versions and regions that these CloudProfiles list.
    #[arg(long, value_name = "PATH")]
    profiles: Vec<PathBuf>,
    /// Former name of --profiles.
    #[arg(long, value_name = "FILE", hide = true)]
    cloudprofile: Vec<PathBuf>,
    /// Lock to compare with.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Files or folders with AWSMachineTemplates, MachineDeployments and KubeadmControlPlanes, for -o capa. Comments in
    /// the output name those that use another image, and the field to change.
    #[arg(long, value_name = "PATH")]
    consumers: Vec<PathBuf>,
    /// Output format.
    #[arg(short, long, value_parser = one_of(&["table", "json", "capa"]), default_value = "table")]
    output: OutputFormat,
}

pub(super) fn run(arguments: &ResolveArguments, providers: Providers) -> anyhow::Result<Reply> {
    if !arguments.consumers.is_empty() && arguments.output != OutputFormat::Capa {
        return Err(wrong_usage("--consumers requires -o capa"));
    }
    let known = arguments.catalogue.read_images()?;
    let mut evidence = known.evidence.clone();
    let mut resolved = known.resolved_flavors()?;
    arguments.selection.retain(&mut resolved)?;
    exit::warn_renamed(!arguments.cloudprofile.is_empty(), "--cloudprofile", "--profiles");
    let profiles = [&arguments.profiles[..], &arguments.cloudprofile].concat();
    if !profiles.is_empty() {
        let listed = listed(&profiles, &mut evidence, providers)?;
        resolved.retain(|resolved| {
            let key = &resolved.key;
            listed.contains(&FlavorKey { flavor: Default::default(), ..key.clone() })
        });
        ensure!(!resolved.is_empty(), "no image and version of the CloudProfiles has a flavor in the sources");
    }
    let lock = arguments.lock.as_deref().map(|path| lock(path, false)).transpose()?.unwrap_or_default();
    known.ensure_separate(&resolved, &lock)?;
    let newer = lock.available(&resolved, &known.catalogue, known.policy.now);
    match arguments.output {
        OutputFormat::Json => {
            let newer: Vec<Value> = newer.iter().map(change_json).collect();
            let document = json!({
                "schema": "images-resolve/v1", "evidence": evidence.document(), "flavors": [], "newer": newer,
            });
            print_json_with_items(&document, "flavors", &resolved, |resolved| Ok(flavor_json(resolved)))?;
        }
        OutputFormat::Capa => {
            let users = template_users(&arguments.consumers, &mut evidence)?;
            print(&machine_templates(&resolved, &lock, users.as_ref())?)?;
        }
        _ => print(&text(&resolved, &newer, width()))?,
    }
    let complete = resolved.iter().all(|resolved| resolved.chosen().is_some());
    let exit = if complete && newer.is_empty() { Exit::Done } else { Exit::Findings };
    Ok(Reply::new(evidence, exit))
}

/// The users of machine templates; `None` if no files are given.
fn template_users(paths: &[PathBuf], evidence: &mut Evidence) -> anyhow::Result<Option<TemplateUsers>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut objects = Vec::new();
    for file in evidence.note_skipped(files(paths)) {
        objects.extend(file.objects()?);
    }
    Ok(Some(TemplateUsers::read(&objects)))
}

/// The entries of profiles, as keys without flavors.
fn listed(paths: &[PathBuf], evidence: &mut Evidence, providers: Providers) -> anyhow::Result<BTreeSet<FlavorKey>> {
    let mut listed = BTreeSet::new();
    for file in profiles(paths, evidence)? {
        let profile = Profile::read(file.document, providers).context(file.source)?;
        let realm = profile.format.realm(&profile.spec.regions);
        let regions = profile.spec.regions.iter().map(|region| Some(region.name.clone()));
        let regions: Vec<Option<String>> = regions.chain([None]).collect();
        for image in &profile.spec.machine_images {
            for (version, region) in
                image.versions.iter().flat_map(|version| regions.iter().map(move |region| (version, region)))
            {
                listed.insert(FlavorKey {
                    provider: profile.format.provider_type(),
                    realm: realm.to_owned(),
                    image: image.name.clone(),
                    version: version.version.clone(),
                    flavor: Default::default(),
                    region: region.clone(),
                });
            }
        }
    }
    Ok(listed)
}

fn text(resolved: &[Resolved<'_>], newer: &[Change], width: usize) -> String {
    let mut text = String::new();
    for resolved in resolved {
        let newer = newer.iter().find(|change| change.key == resolved.key);
        text.push_str(&paragraph(&resolved.key.to_string(), HEADING, 0, width));
        let mut table = Table::new(["", "", "", "", ""]);
        for candidate in &resolved.candidates {
            let style = match candidate.verdict {
                Verdict::Chosen | Verdict::ChosenOwner => GOOD,
                Verdict::Rejected(_) => BAD,
                Verdict::Older | Verdict::SameAge | Verdict::SameAgeLaterOwner | Verdict::LaterOwner => ASIDE,
            };
            table.row([
                candidate.image.reference.value.as_str().into(),
                created(candidate).into(),
                candidate.image.name.as_str().into(),
                candidate.image.owner.as_str().into(),
                Cell::styled(candidate.verdict.to_string(), style),
            ]);
        }
        text.push_str(&table.render(2, width));
        if resolved.chosen().is_none() {
            text.push_str(&paragraph("no image can be used", BAD, 2, width));
        }
        if let Some(Change { before: Some(before), cause, .. }) = newer {
            text.push_str(&paragraph(&format!("locked is {}: {}", before.reference, cause.text()), CAREFUL, 2, width));
        }
    }
    text
}
