//! One Shoot: what is stored, the Worker, and the hashes of its pools.

use gardener_extension_worker::api::gardener::{Shoot, WorkerSpec};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::pool::hash::{ProviderItems, pool_hash};
use gardener_extension_worker::shoot::{read_shoot, stored_shoot, worker};
use serde_json::{Map, Value, json};

use super::Compared;
use super::corpus::{Corpus, garden, surroundings, typed};

pub(crate) fn result(input: &Value, expected: &Value, corpus: &Corpus) -> Result<Compared, String> {
    let profile = typed(&corpus.profile(input)?)?;
    let outside = &input["outside"];
    let stored = if outside["skipAdmission"] == true {
        read_shoot(&input["shoot"])
    } else {
        stored_shoot(&input["shoot"], None, &profile.spec, &garden(outside))
    };
    let made = stored.and_then(|stored| {
        let worker = worker(&stored, &profile.spec, &surroundings(outside, &input["existingWorker"]))?;
        Ok((stored, worker))
    });
    match made {
        // Go's error texts are not compared, only that there is an error.
        Err(_) if expected.get("error").is_some() => Ok((Value::Null, Value::Null)),
        Err(error) => Err(error.to_string()),
        Ok(_) if expected.get("error").is_some() => Err("is an error there".to_owned()),
        Ok((stored, worker)) => {
            let got = json!({
                "stored": output(&stored), "worker": worker["spec"], "pools": hashes(&worker["spec"], &stored)?,
            });
            let reference = json!({
                "stored": expected["stored"], "worker": expected["worker"], "pools": compared_hashes(&expected["pools"]),
            });
            Ok((reference, got))
        }
    }
}

/// The members of a stored Shoot that the cases contain.
pub(crate) fn output(stored: &Value) -> Value {
    let of = |object: &Value, members: &[&str]| -> Value {
        let found = members.iter().filter_map(|member| Some(((*member).to_owned(), object.get(*member)?.clone())));
        Value::Object(found.collect())
    };
    let spec = &stored["spec"];
    let mut output = json!({
        "kubernetes": of(&spec["kubernetes"], &["version", "kubelet", "kubeProxy"]),
        "provider": of(&spec["provider"], &["workers", "workersSettings"]),
    });
    if let Some(dns) = spec["systemComponents"].get("nodeLocalDNS") {
        output["systemComponents"] = json!({"nodeLocalDNS": dns});
    }
    json!({"spec": output})
}

/// The hashes that a library of Gardener computes for every pool, without the provider's additions.
pub(crate) fn hashes(spec: &Value, stored: &Value) -> Result<Value, String> {
    let worker: WorkerSpec = decode_lenient(&to_go_json(spec)).map_err(|error| error.to_string())?;
    let shoot: Shoot = decode_lenient(&to_go_json(stored)).map_err(|error| error.to_string())?;
    let mut hashes = Map::new();
    for pool in &worker.pools {
        let hashed = pool_hash(pool, &shoot, &ProviderItems::default()).map_err(|error| error.to_string())?;
        let in_place = hashed.in_place.map(|hash| hash.0);
        hashes.insert(pool.name.clone(), json!({"libraryHash": hashed.hash.0, "inPlaceHash": in_place}));
    }
    Ok(hashes.into())
}

/// The compared ones of the measured hashes.
pub(crate) fn compared_hashes(pools: &Value) -> Value {
    let of_pool = |pool: &Value| json!({"libraryHash": pool["libraryHash"], "inPlaceHash": pool["inPlaceHash"]});
    pools.as_object().into_iter().flatten().map(|(name, pool)| (name.clone(), of_pool(pool))).collect()
}
