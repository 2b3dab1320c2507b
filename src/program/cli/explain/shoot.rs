//! `explain` for Shoots: which Shoot fields enter the key and the machine classes of its pools, from files only.

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;

use super::ExplainArguments;
use super::section::{INDENT, section};
use crate::cli::documentation::linked;
use crate::cli::evidence::{Evidence, Reply, no_match};
use crate::cli::exit::Exit;
use crate::cli::preview::shoots::ShootReader;
use crate::cli::screen::Page;
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::target::{Given, is_shoot_called};
use crate::cli::terminal::{ASIDE, BAD, HEADING, OutputFormat, complain, document_text, width_of};
use decisions::provider::Providers;
use decisions::worker::machines::machine_objects::MachineObjects;
use decisions::worker::plan::desired::{CloudView, DesiredState};
use explanations::explain::{DecidingMember, HashEffect, ShootPoolExplanation, explain, explain_shoot};
use explanations::preview::{Assumption, CloudProfiles, Failure, Inputs, worker_context};
use runtime::reader::files::NamedFile;

/// A Shoot with the inputs that determine its nodes.
#[derive(Serialize)]
struct ExplainedShoot {
    shoot: String,
    provider: String,
    presumed: Vec<&'static str>,
    pools: Vec<ShootPoolExplanation>,
}

/// The answer for the Shoots in files.
pub(super) fn page(
    arguments: &ExplainArguments,
    given: &Given,
    files: &[NamedFile],
    mut evidence: Evidence,
    providers: Providers,
) -> anyhow::Result<Page> {
    evidence.about("Shoot");
    let profiles = CloudProfiles::new(providers);
    let reader = ShootReader::new(&arguments.presume, &arguments.profiles, &profiles)?;
    let mut found = FoundShoots::default();
    for file in files {
        match reader.shoots_of_file(file, &profiles) {
            Ok(shoots) => shoots.iter().for_each(|inputs| found.add(inputs, arguments, given, &mut evidence)),
            Err(error) => evidence.unread(&error),
        }
    }
    found.ensure_result(arguments, given, &evidence)?;
    let FoundShoots { explained, errors, .. } = found;
    let text = match arguments.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let document = json!({
                "schema": "explain-shoot/v1", "evidence": evidence.document(), "shoots": explained, "errors": errors,
            });
            document_text(&document, arguments.output)?
        }
        OutputFormat::Name => explained.iter().map(|shoot| format!("{}\n", shoot.shoot)).collect(),
        format => {
            errors.iter().for_each(|error| complain(error));
            explained.iter().map(|shoot| shoot_text(shoot, width_of(format))).collect::<Vec<_>>().join("\n")
        }
    };
    let fails = explained.iter().flat_map(|shoot| &shoot.pools).any(|pool| pool.error.is_some());
    let exit = if fails || !errors.is_empty() { Exit::Invalid } else { Exit::Done };
    Ok(Page { text, result: Reply::new(evidence, exit) })
}

#[derive(Default)]
struct FoundShoots {
    explained: Vec<ExplainedShoot>,
    errors: Vec<String>,
    /// Names of all pools of the Shoots.
    pools: Vec<String>,
    /// Names of Shoots that are not selected.
    others: Vec<String>,
}

impl FoundShoots {
    fn add(&mut self, inputs: &Inputs, arguments: &ExplainArguments, given: &Given, evidence: &mut Evidence) {
        let named = format!("{}/{}", inputs.namespace(), inputs.name());
        let is_selected = |name: &String| is_shoot_called((inputs.namespace(), inputs.name()), name);
        let in_namespace =
            arguments.reading.namespace.as_deref().is_none_or(|namespace| namespace == inputs.namespace());
        if !in_namespace || !given.names.is_empty() && !given.names.iter().any(is_selected) {
            self.others.push(named);
            return;
        }
        self.pools.extend(pool_names(inputs));
        match explain_inputs(inputs, arguments.pool.as_deref()) {
            Ok(shoot) => {
                evidence.evaluated(1);
                self.explained.push(ExplainedShoot { shoot: named, ..shoot });
            }
            Err(failure) => self.errors.push(format!("Shoot {named}: {}", failure.message)),
        }
    }

    /// Fails if no Shoot, or no pool of the Shoots, is selected.
    fn ensure_result(&self, arguments: &ExplainArguments, given: &Given, evidence: &Evidence) -> anyhow::Result<()> {
        let is_completed = !self.explained.is_empty() || !self.errors.is_empty() || !evidence.is_complete();
        if !is_completed && !self.others.is_empty() {
            let selected = given.names.first().or(arguments.reading.namespace.as_ref());
            let selected = selected.map_or("", String::as_str);
            return Err(no_match("Shoot", selected, self.others.iter().map(String::as_str)));
        }
        let files: Vec<String> = given.files.iter().map(|file| file.display().to_string()).collect();
        ensure!(is_completed, "{}: no Shoot in it", files.join(", "));
        if let Some(pool) = &arguments.pool {
            let is_found = self.explained.iter().any(|shoot| !shoot.pools.is_empty());
            if !is_found && self.errors.is_empty() {
                return Err(no_match("pool", pool, self.pools.iter().map(String::as_str)));
            }
        }
        Ok(())
    }
}

/// The pool names in the Shoot's spec.
fn pool_names(inputs: &Inputs) -> Vec<String> {
    let workers = inputs.shoot.as_ref().and_then(|shoot| shoot.value.pointer("/spec/provider/workers")?.as_array());
    let names = workers.into_iter().flatten().filter_map(|worker| worker["name"].as_str());
    names.map(str::to_owned).collect()
}

fn explain_inputs(written: &Inputs, only: Option<&str>) -> Result<ExplainedShoot, Failure> {
    let made = written.made()?;
    let context = worker_context(&made)?;
    let provider = made.providers.for_worker_type(&context.worker.spec.worker_type)?;
    let cloud = provider.settled_cloud(context)?;
    let cloud = cloud.as_ref().map_or(CloudView::Context, CloudView::Described);
    let desired = DesiredState::new(provider, context, cloud)?;
    let explanation = explain(provider, &desired, &MachineObjects::default(), only)?;
    let pools = made.shoot.iter().flat_map(|shoot| explain_shoot(&explanation, context, provider, &shoot.value));
    Ok(ExplainedShoot {
        shoot: String::new(),
        provider: explanation.provider.clone(),
        presumed: Assumption::of_written(written).into_iter().map(Assumption::text).collect(),
        pools: pools.collect(),
    })
}

fn shoot_text(shoot: &ExplainedShoot, width: usize) -> String {
    let mut text = format!("{HEADING}Shoot {}{HEADING:#} ({})\n", printable(&shoot.shoot), printable(&shoot.provider));
    for presumed in &shoot.presumed {
        text.push_str(&paragraph(&format!("presumed: {presumed}"), ASIDE, INDENT, width));
    }
    for pool in &shoot.pools {
        text.push_str(&format!("\n{HEADING}Pool {}{HEADING:#}\n", printable(&pool.pool)));
        if let Some(error) = &pool.error {
            text.push_str(&paragraph(&format!("✗ is invalid: {}", error.message), BAD, INDENT, width));
        }
        let (heading, effect) = match pool.effect {
            HashEffect::Roll => ("Key", "replaces the nodes"),
            HashEffect::UpdateInPlace => ("In-place hash next to the key", "updates the nodes in place"),
        };
        if pool.classes.is_empty() {
            text.push_str(&paragraph("no classes: the pool has no zones", ASIDE, INDENT, width));
        } else {
            let name = printable(&pool.node_agent_secret_name);
            text.push_str(&section(&format!("{heading} {name}: a change of any of these {effect}")));
            text.push_str(&members_table(&pool.key).render(INDENT, width));
        }
        for class in &pool.classes {
            let noun = if class.zones.len() == 1 { "zone" } else { "zones" };
            let of_zones = format!(" of {noun} {}", class.zones.join(", "));
            let zones = if class.zones.is_empty() { "" } else { &of_zones };
            let hash = class.hash.as_ref().map(|hash| format!(" {hash}")).unwrap_or_default();
            text.push_str(&section(&format!("Class{hash}{zones}: the key and")));
            match class.members.as_slice() {
                [] => text.push_str(&paragraph("nothing else that is set", ASIDE, INDENT, width)),
                members => text.push_str(&members_table(members).render(INDENT, width)),
            }
        }
    }
    if shoot.pools.iter().any(|pool| !pool.classes.is_empty()) {
        let inputs = linked("docs/usage.md#which-changes-replace-nodes");
        let note =
            format!("Only what is set is listed, and setting another input counts as a change. All inputs: {inputs}");
        text.push_str(&format!("\n{}", paragraph(&note, ASIDE, 0, width)));
    }
    text
}

fn members_table(members: &[DecidingMember]) -> Table {
    let mut table = Table::new(["MEMBER OF THE SHOOT", "VALUE"]);
    for DecidingMember { member, value, presumed } in members {
        let value = match value {
            Some(value) => value.as_str().into(),
            None if *presumed => Cell::styled("presumed: from the cloud", ASIDE),
            None => Cell::styled("not shown", ASIDE),
        };
        table.row([member.as_str().into(), value]);
    }
    table
}
