//! What a roll budget of the controller does with a roll (docs/rollouts.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inputs::Inputs;
use super::placement::Placement;
use super::rendered_pools::worker_context;
use decisions::worker::machines::machine_objects::LiveDeployment;
use decisions::worker::plan::class_inputs::{History, owner_digest};
use decisions::worker::plan::roll_budget::let_roll;
use wire::api::gardener::NODE_AGENT_SECRET_LABEL;

/// What a roll budget does with a roll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetEffect {
    /// It lets the roll start at once: an owner requested it, or new machines of the old class can't join.
    #[default]
    Starts,
    /// It holds the roll until a slot is free.
    Holds,
    /// The pool has a slot, or was released, so its roll goes on.
    Continues,
}

/// What a roll budget does with the roll of one placement.
pub(super) fn budget_effect(old: (&Inputs, &Placement), new: (&Inputs, &Placement)) -> BudgetEffect {
    let (old_inputs, before) = old;
    let (new_inputs, after) = new;
    let live = LiveDeployment::read_without_codes(before.deployment.clone()).ok();
    if live.as_ref().is_some_and(|live| live.mark().is_some()) {
        return BudgetEffect::Continues;
    }
    let history = live.as_ref().and_then(LiveDeployment::class_inputs).and_then(History::read).unwrap_or_default();
    // A class that a person has set by hand is restored.
    let is_restored = history.generations.first().is_some_and(|newest| newest.class == after.class_name);
    let is_held = !is_restored && can_be_held(old_inputs, new_inputs, &history, [before, after]);
    if is_held { BudgetEffect::Holds } else { BudgetEffect::Starts }
}

/// Whether the node agent Secret stays, no owner requested the roll, and no annotation releases it.
fn can_be_held(old: &Inputs, new: &Inputs, history: &History, sides: [&Placement; 2]) -> bool {
    let [before, after] = sides;
    let (Ok(old), Ok(new)) = (worker_context(old), worker_context(new)) else { return false };
    let (Some(old_pool), Some(pool)) = (old.pool(&after.pool), new.pool(&after.pool)) else { return false };
    let keeps_secret = pool
        .node_agent_secret_name
        .as_deref()
        .is_some_and(|secret| sides.iter().all(|side| label(&side.deployment) == Some(secret)));
    let owner = history.owner_of(&before.class_name).map_or_else(|| owner_digest(old_pool), str::to_owned);
    keeps_secret && owner == owner_digest(pool) && !let_roll(new.worker, new.shoot).has_pool(&after.pool)
}

/// The name of the node agent Secret in the labels of new nodes.
fn label(deployment: &Value) -> Option<&str> {
    deployment["spec"]["template"]["spec"]["nodeTemplate"]["metadata"]["labels"][NODE_AGENT_SECRET_LABEL].as_str()
}
