//! What of a Shoot decides over the names of classes, in members of the Shoot: the reverse of a preview.

use serde::Serialize;
use serde_json::Value;

use super::hash_inputs::shown;
use super::{Explanation, HashEffect, HashInput, PoolFailure};
use crate::api::gardener::{UpdateStrategy, WorkerPool};
use crate::pool::hash::PoolHash;
use crate::provider::{Provider, WorkerContext};
use crate::shoot::member_in_shoot;

/// A pool of a Shoot.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootPoolExplanation {
    /// Its name.
    pub pool: String,
    /// Why it can't be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PoolFailure>,
    /// The key: the name that gardenlet gives the Secret of the node agent.
    pub node_agent_secret_name: String,
    /// What the key is made of. It is constant where nodes are updated in place: then what the in-place hash is made of.
    pub key: Vec<DecidingMember>,
    /// What another class does to nodes.
    pub effect: HashEffect,
    /// The classes; more than one where zones have inputs of their own.
    pub classes: Vec<ZoneClasses>,
}

/// The classes of zones that have the same inputs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneClasses {
    /// The zones.
    pub zones: Vec<String>,
    /// The hash in their names; absent where something presumed enters it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<PoolHash>,
    /// What enters it beside the key.
    pub members: Vec<DecidingMember>,
}

/// A member that decides over the name of a class.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecidingMember {
    /// Its path: in the pool, or in the Shoot where it begins with `spec` or `status`.
    pub member: String,
    /// The text that is hashed; absent where a person may have put a secret into it, and where it is presumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the value is not the Shoot's but the cloud's.
    pub presumed: bool,
}

/// The pools of a stored Shoot, by the explanation of the Worker that is made of it.
#[must_use]
pub fn explain_shoot(
    explanation: &Explanation,
    context: WorkerContext<'_>,
    provider: &dyn Provider,
    shoot: &Value,
) -> Vec<ShootPoolExplanation> {
    let pools = shoot["spec"]["provider"]["workers"].as_array().into_iter().flatten();
    let pools = pools.filter_map(|document| {
        let explained = explanation.pools.iter().find(|explained| document["name"] == *explained.pool)?;
        let pool = context.pool(&explained.pool)?;
        let of_pool = items_of_pool(provider, pool);
        let member = |input: &HashInput| {
            let presumed = !of_pool.contains(input);
            let value = input.value.clone().filter(|_| !presumed);
            DecidingMember { member: member_in_shoot(&input.input, document), value, presumed }
        };
        let of_key = |input: &HashInput| DecidingMember {
            member: member_in_shoot(&input.input, document),
            value: input.value.clone(),
            presumed: false,
        };
        let is_key = |input: &&HashInput| ["nodeAgentSecretName", "inPlaceHash"].contains(&&*input.input);
        let key = explained.hashes.first().into_iter().flat_map(|hash| &hash.inputs).filter(is_key);
        let is_in_place = pool.update_strategy.is_some_and(UpdateStrategy::is_in_place);
        let key = key.filter(|input| !is_in_place || input.input == "inPlaceHash");
        let classes = explained.hashes.iter().map(|hash| {
            let members: Vec<_> = hash.inputs.iter().filter(|input| !is_key(input)).map(member).collect();
            let is_presumed = members.iter().any(|member| member.presumed);
            ZoneClasses { zones: hash.zones.clone(), hash: Some(hash.hash.clone()).filter(|_| !is_presumed), members }
        });
        Some(ShootPoolExplanation {
            pool: explained.pool.clone(),
            error: explained.error.clone(),
            node_agent_secret_name: pool.node_agent_secret_name.clone().unwrap_or_default(),
            key: key.flat_map(|input| &input.stands_for).map(of_key).collect(),
            effect: if is_in_place { HashEffect::UpdateInPlace } else { HashEffect::Roll },
            classes: classes.collect(),
        })
    });
    pools.collect()
}

/// What the provider hashes of members of the pool itself.
fn items_of_pool(provider: &dyn Provider, pool: &WorkerPool) -> Vec<HashInput> {
    let items = provider.pool_items(pool).unwrap_or_default();
    items.with_node_agent_secret.iter().chain(items.in_place.iter()).map(shown).collect()
}
