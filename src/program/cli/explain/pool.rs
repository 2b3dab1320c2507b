//! The explanation of a pool, sized for one screen.

use super::image::{chosen_text, image_text};
use super::section::{INDENT, hazard_line, section};
use super::zones::zones_text;
use crate::cli::table::{Cell, Table, paragraph, printable};
use crate::cli::terminal::{ASIDE, BAD, HEADING};
use decisions::provider::explanation::{EffectiveInput, Origin};
use explanations::explain::{Explanation, HashEffect, HashExplanation, HashInput, PoolExplanation};

pub(super) fn worker_text(explanation: &Explanation, width: usize) -> String {
    let worker = printable(&explanation.worker);
    let provider = printable(&explanation.provider);
    let pools = explanation.pools.iter().map(|pool| pool_text(pool, width)).collect::<Vec<_>>().join("\n");
    let none = if explanation.pools.is_empty() { "\nThe Worker has no pools.\n" } else { "\n" };
    format!("{HEADING}Worker {worker}{HEADING:#} ({provider})\n{none}{pools}")
}

fn pool_text(pool: &PoolExplanation, width: usize) -> String {
    let mut text = format!("{HEADING}Pool {}{HEADING:#}\n", printable(&pool.pool));
    if let Some(error) = &pool.error {
        let code = error.code.map(|code| format!(" [{}]", code.as_str())).unwrap_or_default();
        text.push_str(&paragraph(&format!("✗ is invalid: {}{code}", error.message), BAD, 2, width));
    }
    for hazard in &pool.hazards {
        text.push_str(&hazard_line("", hazard, width));
    }
    text.push_str(&chosen_text(&pool.image, width));
    if !pool.placements.is_empty() {
        let effect = pool.hashes.first().map_or(HashEffect::Roll, |hash| hash.effect);
        text.push_str(&zones_text(&pool.placements, effect, width));
    }
    text.push_str(&section("Inputs"));
    text.push_str(&inputs_table(&pool.inputs).render(INDENT, width));
    text.push_str(&image_text(&pool.image, width));
    if let Some((first, others)) = pool.hashes.split_first() {
        text.push_str(&hash_text(first, !others.is_empty(), width));
        for hash in others {
            text.push_str(&other_hash_text(hash, first, width));
        }
    }
    if !pool.autoscaler_annotations.is_empty() {
        text.push_str(&autoscaler_text(pool, width));
    }
    text
}

/// All numbers share one row so that the table fits a screen.
fn inputs_table(inputs: &[EffectiveInput]) -> Table {
    const NUMBERS: [&str; 4] = ["minimum", "maximum", "surge", "unavailable"];
    let mut table = Table::new(["INPUT", "VALUE", "FROM"]);
    let numbers = inputs.iter().filter(|input| NUMBERS.contains(&input.name));
    let numbers = numbers.map(|input| format!("{} {}", input.name, input.value)).collect::<Vec<_>>().join(", ");
    for input in inputs {
        match input.name {
            "minimum" => table.row(["machines".into(), numbers.as_str().into(), Origin::Worker.to_string().into()]),
            // The image section prints this input, including defaults.
            "machine type can" => {}
            name if NUMBERS.contains(&name) => {}
            name => {
                let path = input.path.as_deref().unwrap_or_default();
                let origin = format!("{} {path}", input.origin);
                let from = match input.origin {
                    Origin::Default => Cell::styled("default", ASIDE),
                    _ => origin.trim_end().into(),
                };
                table.row([name.into(), input.value.as_str().into(), from]);
            }
        }
    }
    table
}

fn hash_text(hash: &HashExplanation, name_zones: bool, width: usize) -> String {
    let zones = if name_zones { format!(" of zone {}", hash.zones.join(", ")) } else { String::new() };
    let mut table = Table::new(["HASHED INPUT, IN THIS ORDER", "VALUE", "SHA-256"]);
    for input in &hash.inputs {
        table.row([input.input.as_str().into(), value_cell(input), Cell::styled(input.sha256.as_str(), ASIDE)]);
        for part in &input.stands_for {
            let name = format!("  made of {}", part.input);
            table.row([Cell::styled(name, ASIDE), value_cell(part), Cell::styled(part.sha256.as_str(), ASIDE)]);
        }
    }
    let effect = match hash.effect {
        HashEffect::Roll => "rolls the machines",
        HashEffect::UpdateInPlace => "updates the machines in place",
    };
    section(&format!("Hash {}{zones}: a change of any input {effect}", hash.hash)) + &table.render(INDENT, width)
}

/// A further zone's hash, printed as differences from the first, because zones differ in few inputs.
fn other_hash_text(hash: &HashExplanation, first: &HashExplanation, width: usize) -> String {
    let mut table = Table::new(["HASHED INPUT", "VALUE", "SHA-256"]);
    let names = |hash: &HashExplanation| hash.inputs.iter().map(|input| input.input.clone()).collect::<Vec<_>>();
    for input in hash.inputs.iter().filter(|input| !first.inputs.contains(input)) {
        table.row([input.input.as_str().into(), value_cell(input), Cell::styled(input.sha256.as_str(), ASIDE)]);
    }
    let own = names(hash);
    for missing in names(first).into_iter().filter(|name| !own.contains(name)) {
        table.row([missing.into(), Cell::styled("not hashed here", ASIDE), "".into()]);
    }
    let heading = format!("Hash {} of zone {}: as {}, except", hash.hash, hash.zones.join(", "), first.hash);
    section(&heading) + &table.render(INDENT, width)
}

fn value_cell(input: &HashInput) -> Cell {
    match &input.value {
        Some(value) => value.as_str().into(),
        None => Cell::styled(format!("{} bytes, not shown", input.bytes), ASIDE),
    }
}

fn autoscaler_text(pool: &PoolExplanation, width: usize) -> String {
    let mut table = Table::new(["ANNOTATION", "VALUE"]);
    let mut unset = 0;
    for (annotation, value) in &pool.autoscaler_annotations {
        match value {
            Some(value) => table.row([annotation.as_str().into(), value.as_str().into()]),
            None => unset += 1,
        }
    }
    let mut text = section("Cluster-autoscaler annotations");
    if unset < pool.autoscaler_annotations.len() {
        text.push_str(&table.render(INDENT, width));
    }
    if unset > 0 {
        let all = unset == pool.autoscaler_annotations.len();
        let note = if all { "none: the autoscaler's own options count".to_owned() } else { format!("{unset} not set") };
        text.push_str(&paragraph(&note, ASIDE, INDENT, width));
    }
    text
}
