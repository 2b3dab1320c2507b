//! The objects of a shoot as gardenlet creates them, from an example with few machines.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use test_support::leaks;

/// The shoot namespace.
pub(crate) const NAMESPACE: &str = "shoot--p--sim";
pub(crate) const WORKER_NAME: &str = "fleet";
/// Worker types. At these clouds, pools have no dependencies or only optional ones.
pub(crate) const CLOUDS: [&str; 5] = ["aws", "gcp", "alicloud", "openstack", "azure"];

/// The objects of a shoot.
#[derive(Clone)]
pub(crate) struct Documents {
    pub(crate) worker: Value,
    pub(crate) cluster: Value,
    pub(crate) secrets: Vec<Value>,
}

static ALL: LazyLock<BTreeMap<&str, Documents>> =
    LazyLock::new(|| CLOUDS.into_iter().map(|cloud| (cloud, read(cloud))).collect());

impl Documents {
    pub(crate) fn of(cloud: &str) -> Self {
        ALL[cloud].clone()
    }

    /// Four pools, two of them copies, each with a machine per zone and at most this many zones.
    pub(crate) fn pools(cloud: &str, most_zones: usize) -> Vec<Value> {
        let mut pools = ALL[cloud].worker["spec"]["pools"].as_array().cloned().unwrap_or_default();
        for pool in &mut pools {
            let zones: Vec<Value> = pool["zones"].as_array().into_iter().flatten().take(most_zones).cloned().collect();
            [pool["minimum"], pool["maximum"]] = [zones.len(), zones.len() * 2].map(|number| json!(number));
            pool["zones"] = json!(zones);
        }
        pools
    }

    /// Versions of the first pool's image.
    pub(crate) fn images(cloud: &str) -> [&'static str; 2] {
        if cloud == "azure" { ["1992.3.0", "1992.6.0"] } else { ["1877.3.0", "1877.9.0"] }
    }
}

fn read(cloud: &str) -> Documents {
    let file = test_support::repository().join(format!("example/{cloud}.yaml"));
    let text = std::fs::read_to_string(file).expect("the example is there");
    let documents = gardener_extension_worker::api::gotext::yaml::documents(&text).expect("the example is YAML");
    let of_kind =
        |kind: &str| documents.iter().find(|document| document["kind"] == kind).cloned().expect("it is there");
    let namespace = of_kind("Worker")["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let moved = |document: &Value| -> Value {
        serde_json::from_str(&document.to_string().replace(&namespace, NAMESPACE)).expect("it is JSON")
    };
    let mut worker = moved(&of_kind("Worker"));
    worker["metadata"] = json!({"name": WORKER_NAME, "namespace": NAMESPACE});
    let twins = worker["spec"]["pools"].as_array().cloned().unwrap_or_default();
    for mut twin in twins {
        twin["name"] = json!(format!("{}-too", twin["name"].as_str().unwrap_or_default()));
        worker["spec"]["pools"].as_array_mut().expect("there are pools").push(twin);
    }
    let secrets =
        documents.iter().filter(|document| document["kind"] == "Secret").map(|secret| with_secrets(moved(secret)));
    Documents { worker, cluster: moved(&of_kind("Cluster")), secrets: secrets.collect() }
}

/// Adds texts to the Secret that must not appear anywhere else.
fn with_secrets(mut secret: Value) -> Value {
    let [user_data, credentials] = leaks::SECRETS;
    let texts = secret["stringData"].as_object_mut().into_iter().flatten();
    for (key, text) in texts {
        match key.as_str() {
            "userData" => *text = json!(format!("{} {user_data}", text.as_str().unwrap_or_default())),
            "secretAccessKey" | "accessKeySecret" | "clientSecret" | "password" => *text = json!(credentials),
            _ => {}
        }
    }
    secret
}
