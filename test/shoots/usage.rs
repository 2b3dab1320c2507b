//! The inputs that replace nodes, in the code and in docs/usage.md: all that roll a pool in the cases, and no others.

use std::collections::BTreeSet;
use std::path::Path;

use gardener_extension_worker::api::gardener::{Shoot, WorkerSpec};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::pool::hash::node_agent_items;
use gardener_extension_worker::shoot::REPLACING_INPUTS;
use serde_json::Value;

/// The inputs of the name of a node agent's Secret, by pool.
type Items = BTreeSet<(String, String, String)>;

/// The inputs that differ between two Workers, for pools in both.
pub(crate) fn changed_inputs(workers: [&Value; 2], shoots: [&Value; 2]) -> Result<BTreeSet<String>, String> {
    let [old, new] = [items(workers[0], shoots[0])?, items(workers[1], shoots[1])?];
    let pools = |items: &Items| items.iter().map(|(pool, ..)| pool.clone()).collect::<BTreeSet<_>>();
    let both: BTreeSet<String> = pools(&old).intersection(&pools(&new)).cloned().collect();
    let changed = old.symmetric_difference(&new).filter(|(pool, ..)| both.contains(pool));
    Ok(changed.map(|(_, input, _)| input.clone()).collect())
}

fn items(spec: &Value, stored: &Value) -> Result<Items, String> {
    let worker: WorkerSpec = decode_lenient(&to_go_json(spec)).map_err(|error| error.to_string())?;
    let shoot: Shoot = decode_lenient(&to_go_json(stored)).map_err(|error| error.to_string())?;
    let mut all = Items::new();
    for pool in worker.pools.iter().filter(|pool| pool.update_strategy.is_none_or(|strategy| !strategy.is_in_place())) {
        for item in node_agent_items(pool, &shoot).map_err(|error| error.to_string())?.iter() {
            all.insert((pool.name.clone(), item.input.to_string(), item.value.clone()));
        }
    }
    Ok(all)
}

/// The inputs that the code lists as replacing nodes.
pub(crate) fn named() -> BTreeSet<String> {
    REPLACING_INPUTS.iter().map(|known| known.input.to_owned()).collect()
}

/// Whether the page contains the table generated from the code.
pub(crate) fn is_documented() -> bool {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/usage.md");
    let page = std::fs::read_to_string(page).expect("docs/usage.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| input |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.eq(REPLACING_INPUTS.iter().map(|known| format!("| `{}` | {} |", known.input, known.text)))
}
