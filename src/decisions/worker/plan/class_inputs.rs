//! Pure: records the inputs of a machine deployment's class names, so that past rolls can be explained.
//!
//! A class name contains only five characters of a hash. The record contains a digest of each named input for the last
//! three classes. It is an annotation on the MachineDeployment itself, not in its template, because
//! machine-controller-manager compares the template. It contains no values. Clients that can read the annotation can
//! also read the machine class, so even the digest of an easily guessed value leaks nothing; eight characters of it
//! confirm little.
//!
//! ```text
//!  hash items of the plan ─┐
//!  annotation, live class ─┼─► record ─► History ─► annotation, at most 1 KiB
//!  time, from the caller  ─┘                └─────► why: which input, from class to class, from when to when
//! ```
//!
//! A record is written when the class changes, or when an object has none because the Go extension created it. Other
//! controllers don't touch the annotation. If they change the class, the record shows a class with unknown inputs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::pool::hash::{HashItems, in_place_items, node_agent_items};
use crate::worker::machines::machine_objects::LiveDeployment;
use wire::api::gardener::{Shoot, WorkerPool};

mod annotation;
mod detail;
mod history;

pub use annotation::MAXIMUM_SIZE;
pub use detail::Detail;
pub use history::{
    BudgetMembers, ChangedInputs, ClassChange, Difference, Generation, History, InputChange, MarkChange, RecordedWait,
    changed_inputs,
};

/// Prefix of all annotations that this program keeps on objects.
pub const OWN_PREFIX: &str = "gardener-extension-worker/";
/// Annotation on MachineDeployments with the record.
pub const ANNOTATION: &str = "gardener-extension-worker/class-inputs";
/// Marks inputs that are not hashed themselves but determine a hashed one.
pub const INDIRECT_PREFIX: char = '~';

/// Inputs of a class name: digest by name.
pub type Inputs = BTreeMap<String, String>;

/// Digests of the inputs of a class name, and of the inputs that determine opaque ones.
#[must_use]
pub fn inputs_of(items: &HashItems, pool: &WorkerPool, shoot: &Shoot) -> Inputs {
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut behind = Vec::new();
    for item in items.iter() {
        texts.entry(item.input.to_string()).or_default().push(&item.value);
        match &*item.input {
            "nodeAgentSecretName" => behind.extend(node_agent_items(pool, shoot)),
            "inPlaceHash" => behind.extend(in_place_items(pool, shoot)),
            _ => {}
        }
    }
    // An input may determine both, with the same value.
    for item in behind.iter().flat_map(HashItems::iter) {
        texts.entry(format!("{INDIRECT_PREFIX}{}", item.input)).or_insert_with(|| vec![&item.value]);
    }
    texts
        .into_iter()
        .map(|(name, values)| {
            let digest = digest(&name, &values);
            (name, digest)
        })
        .collect()
}

/// Digest of the fields of a pool that its owner can edit while the name of its node agent Secret stays.
#[must_use]
pub fn owner_digest(pool: &WorkerPool) -> String {
    let encrypted =
        |encrypted: Option<bool>| encrypted.map_or("", |encrypted| if encrypted { "true" } else { "false" });
    // Empty and absent types differ.
    let of_type = |name: &Option<String>| name.as_ref().map_or("-".to_owned(), |name| format!("={name}"));
    let mut values = vec![pool.provider_config.as_ref().map_or("", |config| config.get()).to_owned()];
    if let Some(volume) = &pool.volume {
        values.extend([of_type(&volume.volume_type), volume.size.clone(), encrypted(volume.encrypted).to_owned()]);
    }
    for volume in &pool.data_volumes {
        let settings = [of_type(&volume.volume_type), volume.size.clone(), encrypted(volume.encrypted).to_owned()];
        values.push(volume.name.clone());
        values.extend(settings);
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    digest("owner", &values)
}

/// Updates the record of a live deployment in `target`, its next state.
pub fn keep_record(
    target: &mut Value,
    live: Option<&LiveDeployment>,
    class: &str,
    inputs: &Inputs,
    budget: &BudgetMembers,
    now: Timestamp,
) {
    let recorded = live.and_then(LiveDeployment::class_inputs);
    let live_class = live.map(|live| live.object.spec.template.spec.class.name.as_str());
    let live_class = live_class.filter(|class| !class.is_empty());
    let known = recorded.and_then(History::read);
    let record = history::record(known, live_class, class, inputs, budget, now);
    let Some(text) = record.and_then(|history| history.write()) else { return };
    annotate(target, ANNOTATION, &text);
}

/// Records in `target`, the next state of a live deployment, that it waits for a planned class.
pub fn keep_wait(
    target: &mut Value,
    live: &LiveDeployment,
    planned_class: &str,
    since: Timestamp,
    budget: &BudgetMembers,
    now: Timestamp,
) {
    let live_class = &live.object.spec.template.spec.class.name;
    let wait = RecordedWait { since, target: digest_of_class(planned_class) };
    let record = history::record_wait(live.history(), live_class, wait, budget, now);
    let Some(text) = record.and_then(|history| history.write()) else { return };
    annotate(target, ANNOTATION, &text);
}

/// Records in `target`, the next state of a live deployment, that it is on hold.
pub fn keep_hold(target: &mut Value, live: &LiveDeployment, owner: &str, now: Timestamp) {
    let live_class = &live.object.spec.template.spec.class.name;
    let record = history::record_hold(live.history(), live_class, owner, now);
    let Some(text) = record.and_then(|history| history.write()) else { return };
    annotate(target, ANNOTATION, &text);
}

/// The record of a live deployment as if it got this class now.
#[must_use]
pub fn record_with(live: &LiveDeployment, class: &str, inputs: &Inputs, now: Timestamp) -> Option<History> {
    let live_class = Some(live.object.spec.template.spec.class.name.as_str());
    history::record(live.history(), live_class, class, inputs, &BudgetMembers::Off, now)
}

fn digest_of_class(class: &str) -> String {
    digest("class", &[class])
}

/// Sets an annotation of an object.
pub(crate) fn annotate(object: &mut Value, annotation: &str, text: &str) {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = Value::Object(serde_json::Map::new());
    }
    annotations[annotation] = text.into();
}

impl LiveDeployment {
    /// The raw annotation with the inputs of its class names.
    #[must_use]
    pub fn class_inputs(&self) -> Option<&str> {
        self.object.metadata.annotations.as_ref()?.get(ANNOTATION).map(String::as_str)
    }

    /// When the deployment got its class, according to the record. For a class created by another program, this is when
    /// it was found. The age of the deployment is no substitute.
    #[must_use]
    pub fn class_changed(&self) -> Option<Timestamp> {
        self.history()?.class_since(&self.object.spec.template.spec.class.name)
    }

    /// Since when the deployment waits for this planned class, according to the record.
    #[must_use]
    pub fn waits_since(&self, planned_class: &str) -> Option<Timestamp> {
        self.history()?.waits_since(planned_class)
    }

    /// Whether the record contains an earlier class.
    #[must_use]
    pub fn has_had_another_class(&self) -> bool {
        self.history().is_some_and(|history| history.generations.len() > 1)
    }

    /// The parsed record.
    pub(crate) fn history(&self) -> Option<History> {
        self.class_inputs().and_then(History::read)
    }
}

/// Removes the annotations of this program from an object.
pub fn without_own_annotations(document: &mut Value) {
    let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let before = annotations.len();
    annotations.retain(|name, _| !name.starts_with(OWN_PREFIX));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

/// Whether a recorded digest of an input is that of this value. So a value can be recognised among known ones, such as
/// the versions of a CloudProfile.
#[must_use]
pub fn is_value(input: &str, recorded: &str, value: &str) -> bool {
    digest(input, &[value]) == recorded
}

/// The first eight hexadecimal characters of the SHA-256 over name and values, separated by zero bytes.
pub(crate) fn digest(name: &str, values: &[&str]) -> String {
    let mut hash = Sha256::new_with_prefix(name.as_bytes());
    for value in values {
        hash.update([0]);
        hash.update(value.as_bytes());
    }
    let mut text = hex::encode(hash.finalize());
    text.truncate(8);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inputs(text: &str) -> Inputs {
        [("machineType".to_owned(), text.to_owned())].into()
    }

    fn live(class: &str, record: Option<&str>) -> LiveDeployment {
        let annotations = record.map_or(json!({}), |record| json!({ ANNOTATION: record }));
        let document = json!({
            "metadata": {"name": "a-z1", "annotations": annotations},
            "spec": {"template": {"spec": {"class": {"name": class}}}},
        });
        LiveDeployment::read_without_codes(document).unwrap()
    }

    fn recorded(live: Option<&LiveDeployment>, class: &str, of: &Inputs) -> Option<String> {
        let mut target = json!({});
        keep_record(&mut target, live, class, of, &BudgetMembers::Off, Timestamp::UNIX_EPOCH);
        target["metadata"]["annotations"][ANNOTATION].as_str().map(str::to_owned)
    }

    #[test]
    fn records_class_change() {
        let first = recorded(None, "one", &inputs("a")).unwrap();
        let one = live("one", Some(&first));
        assert!(!one.has_had_another_class() && one.class_changed().is_some());
        let second = recorded(Some(&one), "two", &inputs("b")).unwrap();
        let two = live("two", Some(&second));
        assert!(two.has_had_another_class());
        assert!(live("three", Some(&second)).class_changed().is_none(), "nobody has recorded that class");
        assert!(!live("one", None).has_had_another_class());
    }

    #[test]
    fn records_foreign_class_as_found() {
        let found = recorded(Some(&live("one", None)), "two", &inputs("b")).unwrap();
        assert!(live("two", Some(&found)).has_had_another_class(), "it had one: {found}");
        let new = recorded(Some(&live("", None)), "two", &inputs("b")).unwrap();
        assert!(!live("two", Some(&new)).has_had_another_class(), "it had none: {new}");
    }

    #[test]
    fn records_indirect_inputs() {
        let named = |strategy: Option<&str>, opaque: &[&'static str]| {
            let pool = json!({
                "name": "a", "machineType": "t", "kubernetesVersion": "1.33.2", "updateStrategy": strategy,
                "machineImage": {"name": "i", "version": "1"},
            });
            let mut items = HashItems::default();
            opaque.iter().for_each(|input| items.push(*input, "made of others"));
            items.push("subnet", "s");
            let pool = serde_json::from_str(&pool.to_string()).unwrap();
            let inputs = inputs_of(&items, &pool, &serde_json::from_str("{}").unwrap());
            inputs.into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(None, &[]), "subnet");
        assert_eq!(
            named(None, &["nodeAgentSecretName"]),
            "nodeAgentSecretName subnet ~kubernetesVersion ~machineImage ~machineType"
        );
        assert_eq!(
            named(Some("AutoInPlaceUpdate"), &["nodeAgentSecretName", "inPlaceHash"]),
            "inPlaceHash nodeAgentSecretName subnet ~kubernetesVersion ~machineImage.version ~machineType"
        );
    }

    #[test]
    fn owner_digest_covers_fields_beside_the_key() {
        let digest = |members: Value| {
            let mut pool = json!({"name": "a", "machineType": "t", "machineImage": {"name": "i", "version": "1"}});
            pool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            owner_digest(&serde_json::from_str(&pool.to_string()).unwrap())
        };
        let others = json!({"maximum": 9, "labels": {"a": "b"}, "nodeAgentSecretName": "k", "zones": ["1"]});
        assert_eq!(digest(json!({})), digest(others), "nothing of the owner's nodes");
        let edits = [
            json!({}),
            json!({"providerConfig": {"a": 1}}),
            json!({"volume": {"size": "50Gi"}}),
            json!({"volume": {"size": "50Gi", "type": ""}}),
            json!({"volume": {"size": "50Gi", "encrypted": false}}),
            json!({"dataVolumes": [{"name": "d", "size": "50Gi"}]}),
            json!({"dataVolumes": [{"name": "d", "size": "50Gi", "encrypted": true}]}),
            json!({"dataVolumes": [{"name": "d", "size": "50Gi"}, {"name": "e", "size": "50Gi"}]}),
        ];
        let digests: std::collections::BTreeSet<String> = edits.iter().cloned().map(digest).collect();
        assert_eq!(digests.len(), edits.len());
        assert!(digests.iter().all(|digest| digest.len() == 8), "{digests:?}");
    }

    #[test]
    fn preserves_foreign_annotations() {
        let mut target = json!({"metadata": {"annotations": {"foreign": "stays"}}});
        keep_record(&mut target, None, "one", &inputs("a"), &BudgetMembers::Off, Timestamp::UNIX_EPOCH);
        assert_eq!(target["metadata"]["annotations"]["foreign"], "stays");
        assert!(target["metadata"]["annotations"][ANNOTATION].is_string());
    }

    #[test]
    fn removes_own_annotations() {
        let seen = |metadata: Value| {
            let mut document = json!({"metadata": metadata, "spec": {}});
            without_own_annotations(&mut document);
            document["metadata"].clone()
        };
        let own = json!({"name": "a", "annotations": {ANNOTATION: "{}"}});
        assert_eq!(seen(own), json!({"name": "a"}), "none is left");
        let both = json!({"annotations": {ANNOTATION: "{}", "foreign": "stays"}});
        assert_eq!(seen(both), json!({"annotations": {"foreign": "stays"}}));
        for unchanged in
            [json!({"name": "a"}), json!({"annotations": {}}), json!({"annotations": {"foreign": "stays"}})]
        {
            assert_eq!(seen(unchanged.clone()), unchanged);
        }
    }
}
