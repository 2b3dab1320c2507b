//! The inputs of the hash in a class name: names, digests, and the values that can't be secret.

use serde::Serialize;
use sha2::{Digest, Sha256};

use decisions::pool::hash::{HashItem, HashItems, PoolHash, in_place_items, node_agent_items};
use decisions::provider::explanation::PlacementPlan;
use wire::api::gardener::{Shoot, WorkerPool};

/// Length of a printed digest.
const DIGEST_LENGTH: usize = 12;

/// A hash with its inputs. Zones with the same inputs share it.
#[derive(Clone, Debug, Serialize)]
pub struct HashExplanation {
    /// The hash in the class names.
    pub hash: PoolHash,
    /// The machine deployments whose classes have it.
    pub deployments: Vec<String>,
    /// The zones of these deployments.
    pub zones: Vec<String>,
    /// The effect of another hash on the machines.
    pub effect: HashEffect,
    /// The inputs in the order in which they are hashed.
    pub inputs: Vec<HashInput>,
}

/// The effect of another hash on the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HashEffect {
    /// New machines replace them.
    Roll,
    /// They are updated in place.
    UpdateInPlace,
}

/// An input of a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HashInput {
    /// Path of the field that it comes from.
    pub input: String,
    /// The value; absent if a user may have put a secret into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The first hexadecimal characters of its SHA-256.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: usize,
    /// If the value is itself a hash, the inputs of that hash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<HashInput>,
}

/// The hashes of a pool; several if its zones have different inputs.
pub(super) fn explain_hashes(shoot: &Shoot, pool: &WorkerPool, placements: &[PlacementPlan]) -> Vec<HashExplanation> {
    let mut explanations: Vec<(&HashItems, HashExplanation)> = Vec::new();
    let is_in_place = pool.update_strategy.is_some_and(|strategy| strategy.is_in_place());
    let effect = if is_in_place { HashEffect::UpdateInPlace } else { HashEffect::Roll };
    for placement in placements {
        let Some((_, items)) = &placement.class else { continue };
        let deployment = placement.deployment.0.clone();
        match explanations.iter_mut().find(|(known, _)| *known == items) {
            Some((_, known)) => {
                known.deployments.push(deployment);
                known.zones.extend(placement.zone.clone());
            }
            None => explanations.push((
                items,
                HashExplanation {
                    hash: items.pool_hash(),
                    deployments: vec![deployment],
                    effect,
                    zones: placement.zone.iter().cloned().collect(),
                    inputs: items.iter().map(|item| explain_item(item, shoot, pool)).collect(),
                },
            )),
        }
    }
    explanations.into_iter().map(|(_, explanation)| explanation).collect()
}

fn explain_item(item: &HashItem, shoot: &Shoot, pool: &WorkerPool) -> HashInput {
    let stands_for = match &*item.input {
        "nodeAgentSecretName" => node_agent_items(pool, shoot),
        "inPlaceHash" => in_place_items(pool, shoot),
        _ => Ok(HashItems::default()),
    };
    HashInput { stands_for: stands_for.unwrap_or_default().iter().map(displayed).collect(), ..displayed(item) }
}

pub(super) fn displayed(item: &HashItem) -> HashInput {
    let mut sha256 = hex::encode(Sha256::digest(item.value.as_bytes()));
    sha256.truncate(DIGEST_LENGTH);
    HashInput {
        input: item.input.to_string(),
        value: (!may_hold_secret(&item.input)).then(|| item.value.clone()),
        sha256,
        bytes: item.value.len(),
        stands_for: Vec::new(),
    }
}

/// Whether an input is free text: the provider config, or an address that may have a signature.
fn may_hold_secret(input: &str) -> bool {
    input == "providerConfig" || input.to_ascii_lowercase().ends_with("uri")
}
