//! The fields of a Shoot that decide over class names: the reverse of a preview.

use serde::Serialize;
use serde_json::Value;

use super::hash_inputs::displayed;
use super::{Explanation, HashEffect, HashInput, PoolFailure};
use decisions::pool::hash::PoolHash;
use decisions::provider::{Provider, WorkerContext};
use profiles::shoot::member_in_shoot;
use wire::api::gardener::{UpdateStrategy, WorkerPool};

/// The explanation of a pool in a Shoot.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootPoolExplanation {
    /// Name of the pool.
    pub pool: String,
    /// Why the pool can't be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PoolFailure>,
    /// The key: the name of the node agent Secret that gardenlet chooses.
    pub node_agent_secret_name: String,
    /// The inputs of the key, or of the in-place hash if nodes are updated in place, because then the key is constant.
    pub key: Vec<DecidingMember>,
    /// The effect of another class on nodes.
    pub effect: HashEffect,
    /// The classes; several if zones have different inputs.
    pub classes: Vec<ZoneClasses>,
}

/// The classes of zones with the same inputs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneClasses {
    /// The zones.
    pub zones: Vec<String>,
    /// The hash in their names; absent if it depends on an assumed input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<PoolHash>,
    /// Its inputs other than the key.
    pub members: Vec<DecidingMember>,
}

/// A field that affects the name of a class.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecidingMember {
    /// Its path in the pool, or in the Shoot if it starts with `spec` or `status`.
    pub member: String,
    /// The hashed value; absent if a user may have put a secret into it, or if it is assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the value comes from the cloud instead of the Shoot.
    pub presumed: bool,
}

/// Explains the pools of a stored Shoot, from the explanation of the Worker derived from it.
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
            let value = if !presumed { input.value.clone() } else { None };
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
            ZoneClasses {
                zones: hash.zones.clone(),
                hash: if !is_presumed { Some(hash.hash.clone()) } else { None },
                members,
            }
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

/// The provider's hash inputs that come from fields of the pool itself.
fn items_of_pool(provider: &dyn Provider, pool: &WorkerPool) -> Vec<HashInput> {
    let items = provider.pool_items(pool).unwrap_or_default();
    items.with_node_agent_secret.iter().chain(items.in_place.iter()).map(displayed).collect()
}
