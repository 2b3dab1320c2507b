//! Which bytes of a provider config are hashed: the received ones, not those that this program would write.
//!
//! A random `WorkerConfig` is written twice with a different member order, white space and escapes. Both texts have the
//! same meaning. Only Kubernetes 1.35 and later hashes the meaning instead of the bytes.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use gardener_extension_worker::api::gardener::{Cluster, Worker};
use gardener_extension_worker::api::gotext::json::{decode_lenient, to_go_json};
use gardener_extension_worker::api::gotext::yaml;
use gardener_extension_worker::api::secret::Secrets;
use gardener_extension_worker::cli::input::{WorkerInput, workers_of_documents};
use gardener_extension_worker::provider::{MachinePlan, Providers};
use gardener_extension_worker::worker::plan::plan;
use gardener_extension_worker::worker::request::decode;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::parity_inputs::{self, ParityInput};

static PLAIN: LazyLock<ParityInput> = LazyLock::new(|| parity_inputs::one("azure/hash-rules/plain-1.34.0"));

/// Everything except the provider config of one pool.
struct Surroundings {
    bundle: Value,
    cluster: Cluster,
    secrets: Secrets,
}

impl Surroundings {
    fn new(kubernetes: &str, node_agent_secret: bool) -> Self {
        let mut bundle = PLAIN.bundle.clone();
        let pool = &mut bundle["worker"]["spec"]["pools"][0];
        pool["kubernetesVersion"] = kubernetes.into();
        if node_agent_secret {
            pool["nodeAgentSecretName"] = "gardener-node-agent-a-77ac3aaaf0a1b2c3".into();
        }
        let WorkerInput { cluster, secrets, .. } = workers_of(vec![bundle.clone()]);
        Self { bundle, cluster: cluster.unwrap(), secrets }
    }

    /// The machines of a Worker whose provider config the API server sends with exactly this text.
    fn received(&self, text: &str) -> MachinePlan {
        const MARK: &str = "the provider config";
        let mut worker = self.bundle["worker"].clone();
        worker["spec"]["pools"][0]["providerConfig"] = MARK.into();
        let worker = to_go_json(&worker).replace(&format!("\"{MARK}\""), text);
        machine(&decode_lenient(&worker).unwrap(), &self.cluster, &self.secrets)
    }

    /// The machines of a Worker that is read from a file.
    fn read_from_file(&self, text: &str) -> MachinePlan {
        let mut bundle = self.bundle.clone();
        let config = yaml::documents(text).unwrap().remove(0);
        bundle["worker"]["spec"]["pools"][0]["providerConfig"] = config;
        let input = workers_of(vec![bundle]);
        machine(&input.worker, &self.cluster, &self.secrets)
    }
}

fn workers_of(documents: Vec<Value>) -> WorkerInput {
    workers_of_documents(Path::new("input"), documents).unwrap().remove(0)
}

fn machine(worker: &Worker, cluster: &Cluster, secrets: &Secrets) -> MachinePlan {
    let context = decode::context(worker, cluster, secrets).unwrap();
    let provider = Providers::SHIPPED.for_worker_type(&worker.spec.worker_type).unwrap();
    let plan = plan(provider, context).unwrap();
    let errors: Vec<_> = plan.errors().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{errors:?}");
    plan.machines().next().unwrap().clone()
}

/// The texts of the provider config that are included in the hash.
fn hashed_texts(machine: &MachinePlan) -> Vec<String> {
    let items = machine.hash_items.iter().filter(|item| item.input == "providerConfig");
    items.map(|item| item.value.clone()).collect()
}

/// Texts with everything that JSON can encode in several ways.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9/]{0,8}",
        prop::collection::vec(
            prop_oneof![
                Just('&'),
                Just('<'),
                Just('>'),
                Just('"'),
                Just('\\'),
                Just('/'),
                Just('é'),
                Just('😀'),
                Just(' ')
            ],
            0..6
        )
        .prop_map(|characters| characters.into_iter().collect()),
    ]
}

fn config() -> impl Strategy<Value = Value> {
    let capacity = prop::option::of(prop::collection::btree_map(
        prop_oneof![Just("cpu"), Just("gpu"), Just("memory"), Just("ephemeral-storage")],
        prop_oneof![Just("1"), Just("1500m"), Just("16Gi"), Just("0.5"), Just("1e3")],
        1..4,
    ));
    let image = (prop_oneof![Just("urn"), Just("id"), Just("communityGalleryImageID")], text());
    let volumes = prop::collection::vec((text(), prop::option::of(image)), 0..3);
    let diagnostics = prop::option::of((any::<bool>(), prop::option::of(text())));
    (capacity, prop::option::of(text()), volumes, diagnostics, prop::option::of(text())).prop_map(
        |(capacity, caching, volumes, diagnostics, reservation)| {
            let mut config = Map::new();
            let mut put = |name: &str, value: Value| config.insert(name.to_owned(), value);
            put("apiVersion", "azure.provider.extensions.gardener.cloud/v1alpha1".into());
            put("kind", "WorkerConfig".into());
            if let Some(capacity) = capacity {
                put("nodeTemplate", json!({"capacity": capacity}));
            }
            if let Some(caching) = caching {
                put("volume", json!({"caching": caching}));
            }
            let volumes: Vec<_> = volumes
                .into_iter()
                .map(|(name, image)| match image {
                    Some((form, value)) => json!({"name": name, "imageRef": {form: value}}),
                    None => json!({"name": name}),
                })
                .collect();
            if !volumes.is_empty() {
                put("dataVolumes", volumes.into());
            }
            if let Some((enabled, address)) = diagnostics {
                let mut profile = json!({"enabled": enabled});
                if let Some(address) = address {
                    profile["storageURI"] = address.into();
                }
                put("diagnosticsProfile", profile);
            }
            if let Some(reservation) = reservation {
                put("capacityReservation", json!({"capacityReservationGroupID": reservation}));
            }
            config.into()
        },
    )
}

/// Writes JSON as another program might. `choices` select the form, and repeat when used up.
struct Writer<'a> {
    text: String,
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl<'a> Writer<'a> {
    fn write(value: &Value, choices: &'a [u8]) -> String {
        let mut writer = Self { text: String::new(), choices: choices.iter().cycle() };
        writer.value(value);
        writer.text
    }

    fn choose(&mut self, below: usize) -> usize {
        usize::from(*self.choices.next().unwrap()) % below
    }

    fn space(&mut self) {
        let space = ["", "", " ", "\n  ", "\t"][self.choose(5)];
        self.text.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let mut mark = '{';
                while !members.is_empty() {
                    let next = self.choose(members.len());
                    let (name, member) = members.remove(next);
                    self.text.push(mark);
                    mark = ',';
                    self.space();
                    self.string(name);
                    self.space();
                    self.text.push(':');
                    self.space();
                    self.value(member);
                    self.space();
                }
                self.text.push_str(if mark == '{' { "{}" } else { "}" });
            }
            Value::Array(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.text.push_str(if index > 0 { "," } else { "" });
                    self.space();
                    self.value(item);
                }
                self.text.push(']');
            }
            Value::String(string) => self.string(string),
            other => self.text.push_str(&other.to_string()),
        }
    }

    fn string(&mut self, string: &str) {
        self.text.push('"');
        for character in string.chars() {
            let must_escape = matches!(character, '"' | '\\');
            if must_escape || self.choose(6) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(self.text, "\\u{unit:04x}");
                }
            } else {
                self.text.push(character);
            }
        }
        self.text.push('"');
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..64)
}

proptest! {
    #[test]
    fn below_1_35_the_received_bytes_are_hashed(config in config(), choices in choices()) {
        let text = Writer::write(&config, &choices);
        prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &config);
        for kubernetes in ["1.33.4", "1.34.0"] {
            for node_agent_secret in [true, false] {
                let machine = Surroundings::new(kubernetes, node_agent_secret).received(&text);
                prop_assert_eq!(hashed_texts(&machine), [text.clone()]);
            }
        }
    }

    #[test]
    fn from_1_35_only_the_meaning_is_hashed(config in config(), one in choices(), other in choices()) {
        let surroundings = Surroundings::new("1.35.0", true);
        let one = surroundings.received(&Writer::write(&config, &one));
        let other = surroundings.received(&Writer::write(&config, &other));
        prop_assert_eq!(&one.hash_items, &other.hash_items);
        prop_assert_eq!(&one.deployment.class_name, &other.deployment.class_name);
        prop_assert_eq!(hashed_texts(&one), Vec::<String>::new());
    }

    #[test]
    fn pools_without_a_node_agent_secret_hash_the_received_bytes_also_from_1_35(
        config in config(), choices in choices()
    ) {
        let text = Writer::write(&config, &choices);
        prop_assert_eq!(hashed_texts(&Surroundings::new("1.35.0", false).received(&text)), [text]);
    }

    #[test]
    fn a_file_is_hashed_as_the_api_server_would_send_it(config in config(), choices in choices()) {
        let text = Writer::write(&config, &choices);
        let as_sent = to_go_json(&config);
        let surroundings = Surroundings::new("1.34.0", true);
        let from_file = surroundings.read_from_file(&text);
        prop_assert_eq!(hashed_texts(&from_file), [as_sent.clone()]);
        prop_assert_eq!(from_file.deployment.class_name, surroundings.received(&as_sent).deployment.class_name);
    }
}

#[test]
fn two_writings_of_one_config_roll_nodes_below_1_35_only() {
    const ONE: &str = r#"{"apiVersion":"azure.provider.extensions.gardener.cloud/v1alpha1","kind":"WorkerConfig","volume":{"caching":"a&b"}}"#;
    let rewritings = [
        ONE.replace(":", ": "),
        ONE.replace('&', "\\u0026"),
        ONE.replace(r#""kind":"WorkerConfig","#, "").replacen('{', r#"{"kind":"WorkerConfig","#, 1),
    ];
    for (kubernetes, rolls) in [("1.33.4", true), ("1.34.7", true), ("1.35.0-alpha.1", false), ("1.35.0", false)] {
        let surroundings = Surroundings::new(kubernetes, true);
        let class = |text: &str| surroundings.received(text).deployment.class_name;
        for other in &rewritings {
            assert_eq!(class(ONE) != class(other), rolls, "{kubernetes}: {other}");
        }
    }
}
