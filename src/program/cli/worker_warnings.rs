//! Warns about Worker values that Gardener's API server would reject although the Go extension accepts them.

use std::collections::BTreeSet;

use serde_json::Value;

use wire::api::gotext::quantity::Quantity;

/// Members of a pool and its nested objects in Gardener's API (docs/contract.md).
const MEMBERS: [(&str, &str); 6] = [
    (
        "",
        "name machineType machineImage minimum maximum maxSurge maxUnavailable annotations labels taints \
         nodeAgentSecretName providerConfig userDataSecretRef volume dataVolumes kubeletDataVolumeName zones \
         machineControllerManager kubernetesVersion kubeletConfig nodeTemplate architecture clusterAutoscaler priority \
         updateStrategy",
    ),
    ("/machineImage", "name version"),
    ("/volume", "name type size encrypted"),
    ("/userDataSecretRef", "name key optional"),
    (
        "/machineControllerManager",
        "machineDrainTimeout machineHealthTimeout machineCreationTimeout machineInPlaceUpdateTimeout \
         inPlaceUpdateTimeout machinePreserveTimeout disableHealthTimeout maxEvictRetries nodeConditions \
         autoPreserveFailedMachineMax",
    ),
    (
        "/clusterAutoscaler",
        "scaleDownUtilizationThreshold scaleDownGpuUtilizationThreshold scaleDownUnneededTime scaleDownUnreadyTime \
         maxNodeProvisionTime",
    ),
];

/// One line per mistake, with its path in the Worker.
pub(super) fn warnings(worker: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut names = BTreeSet::new();
    for (index, pool) in worker["spec"]["pools"].as_array().into_iter().flatten().enumerate() {
        let name = pool["name"].as_str().unwrap_or_default();
        let path = if name.is_empty() { format!("spec.pools[{index}]") } else { format!("spec.pools[{name}]") };
        if !names.insert(name) {
            warnings.push(format!("{path}: several pools have this name"));
        }
        if !is_label(name) {
            warnings.push(format!("{path}.name: {name:?} is no name such as \"workers-1\""));
        }
        let mistakes = [
            numbers(pool),
            surges(pool),
            zones(pool, &worker["spec"]),
            words(pool),
            volume_names(pool),
            sizes(pool),
            unknown_members(pool),
        ];
        warnings.extend(mistakes.into_iter().flatten().map(|mistake| format!("{path}.{mistake}")));
    }
    warnings
}

fn numbers(pool: &Value) -> Vec<String> {
    let number = |member: &str| pool[member].as_i64().unwrap_or_default();
    let is_negative = |member: &&str| number(member) < 0;
    let negative = ["minimum", "maximum"].into_iter().filter(is_negative);
    let mut mistakes: Vec<String> = negative.map(|member| format!("{member}: {} is below 0", number(member))).collect();
    let minimum = number("minimum");
    let maximum = number("maximum");
    if minimum > maximum {
        mistakes.push(format!("minimum: {minimum} is above the maximum {maximum}"));
    }
    mistakes
}

/// Whether a name is a valid DNS label (RFC 1123).
fn is_label(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(allowed) && !name.starts_with('-') && !name.ends_with('-')
}

/// Members with a fixed set of values.
const WORDS: [(&str, &[&str]); 2] = [
    ("architecture", &["amd64", "arm64"]),
    ("updateStrategy", &["AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate"]),
];

fn words(pool: &Value) -> Vec<String> {
    let mistake = |(member, known): (&str, &[&str])| {
        let word = pool[member].as_str().filter(|word| !word.is_empty() && !known.contains(word))?;
        Some(format!("{member}: {word:?} is none of {}", known.join(", ")))
    };
    WORDS.into_iter().filter_map(mistake).collect()
}

fn volume_names(pool: &Value) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let volumes = pool["dataVolumes"].as_array().into_iter().flatten().enumerate();
    let mistake = |(index, volume): (usize, &Value)| match volume["name"].as_str().unwrap_or_default() {
        "" => Some(format!("dataVolumes[{index}].name: a name is required")),
        name if !seen.insert(name.to_owned()) => {
            Some(format!("dataVolumes[{index}].name: several volumes are called {name:?}"))
        }
        _ => None,
    };
    volumes.filter_map(mistake).collect()
}

fn surges(pool: &Value) -> Vec<String> {
    let mistake = |member: &str| match &pool[member] {
        Value::Number(number) => {
            number.as_i64().filter(|number| *number < 0).map(|number| format!("{number} is below 0"))
        }
        Value::String(text) => match text.strip_suffix('%').map(str::parse::<i64>) {
            Some(Ok(percentage)) if percentage >= 0 => None,
            Some(Ok(_)) => Some(format!("{text} is below 0 %")),
            _ => Some(format!("{text:?} is neither a number nor a whole percentage such as \"25%\"")),
        },
        _ => None,
    };
    let mistakes = ["maxSurge", "maxUnavailable"].map(|member| Some(format!("{member}: {}", mistake(member)?)));
    mistakes.into_iter().flatten().collect()
}

fn zones(pool: &Value, spec: &Value) -> Vec<String> {
    let zones: Vec<&str> = pool["zones"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<&str> = zones.iter().copied().filter(|zone| !seen.insert(*zone)).collect();
    let mut mistakes: Vec<String> =
        repeated.into_iter().map(|zone| format!("zones: {zone:?} is in the list several times")).collect();
    // A Shoot without zones declares that in its infrastructure status.
    let infrastructure = &spec["infrastructureProviderStatus"];
    let has_zones = infrastructure["zoned"].as_bool().unwrap_or_else(|| infrastructure.get("resourceGroup").is_none());
    if zones.is_empty() && has_zones {
        mistakes.push("zones: without zones the pool gets no machines".to_owned());
    }
    mistakes
}

fn sizes(pool: &Value) -> Vec<String> {
    let volume = pool.get("volume").map(|volume| ("volume.size".to_owned(), volume));
    let data_volumes = pool["dataVolumes"].as_array().into_iter().flatten().enumerate();
    let data_volumes = data_volumes.map(|(index, volume)| {
        let name = volume["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
        (format!("dataVolumes[{name}].size"), volume)
    });
    let sizes =
        volume.into_iter().chain(data_volumes).filter_map(|(path, volume)| Some((path, volume["size"].as_str()?)));
    let mistake = |size: &str| match Quantity::parse(size) {
        Err(_) => Some(format!("{size:?} is no quantity such as \"50Gi\"")),
        Ok(_) if size.starts_with('-') => Some(format!("{size} is below 0")),
        Ok(quantity) => quantity.is_zero().then(|| format!("{size} is no size")),
    };
    sizes.filter_map(|(path, size)| Some(format!("{path}: {}", mistake(size)?))).collect()
}

fn unknown_members(pool: &Value) -> Vec<String> {
    let mistakes = MEMBERS.iter().flat_map(|(pointer, known)| {
        let members = pool.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(|members| members.keys());
        let unknown = members.filter(|member| !known.split(' ').any(|known| known == *member));
        let object = pointer.trim_start_matches('/');
        let separator = if object.is_empty() { "" } else { "." };
        unknown.map(move |member| format!("{object}{separator}{member}: no such field; it is ignored"))
    });
    mistakes.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_mistake_has_its_path() {
        let pool = |changes: Value| {
            let mut pool = json!({"name": "a", "minimum": 1, "maximum": 2, "zones": ["1"], "maxSurge": 1});
            for (member, value) in changes.as_object().unwrap() {
                pool[member] = value.clone();
            }
            json!({"spec": {"pools": [pool]}})
        };
        assert_eq!(warnings(&pool(json!({}))), [""; 0]);
        for (changes, required) in [
            (json!({"minimum": -4}), "minimum: -4 is below 0"),
            (json!({"minimum": 3}), "minimum: 3 is above the maximum 2"),
            (json!({"maxSurge": "-25%"}), "maxSurge: -25% is below 0 %"),
            (json!({"maxUnavailable": -1}), "maxUnavailable: -1 is below 0"),
            (
                json!({"maxUnavailable": "25"}),
                "maxUnavailable: \"25\" is neither a number nor a whole percentage such as \"25%\"",
            ),
            (json!({"zones": ["1", "2", "1"]}), "zones: \"1\" is in the list several times"),
            (json!({"zones": []}), "zones: without zones the pool gets no machines"),
            (json!({"volume": {"size": "64GB"}}), "volume.size: \"64GB\" is no quantity such as \"50Gi\""),
            (json!({"dataVolumes": [{"name": "x", "size": "0Gi"}]}), "dataVolumes[x].size: 0Gi is no size"),
            (json!({"volume": {"size": "-1Gi"}}), "volume.size: -1Gi is below 0"),
            (json!({"architecture": "riscv"}), "architecture: \"riscv\" is none of amd64, arm64"),
            (json!({"dataVolumes": [{"size": "1Gi"}]}), "dataVolumes[0].name: a name is required"),
            (
                json!({"dataVolumes": [{"name": "x"}, {"name": "x"}]}),
                "dataVolumes[1].name: several volumes are called \"x\"",
            ),
            (json!({"machineTyp": "x"}), "machineTyp: no such field; it is ignored"),
            (json!({"volume": {"siz": "1Gi"}}), "volume.siz: no such field; it is ignored"),
        ] {
            assert_eq!(warnings(&pool(changes)), [format!("spec.pools[a].{required}")]);
        }
        let outside_of_zones =
            json!({"spec": {"infrastructureProviderStatus": {"zoned": false}, "pools": [{"name": "a"}]}});
        assert_eq!(warnings(&outside_of_zones), [""; 0]);
        let twice = json!({"spec": {"pools": [{"name": "a", "zones": ["1"]}, {"name": "a", "zones": ["1"]}]}});
        assert_eq!(warnings(&twice), ["spec.pools[a]: several pools have this name"]);
    }
}
