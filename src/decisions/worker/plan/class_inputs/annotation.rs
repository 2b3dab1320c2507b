//! Format of the annotation: JSON with the current class in full and older ones as differences.
//!
//! `{"v":1,"d":0,"g":[{"c":"class","t":"2026-09-01T10:00:00Z","f":true,"i":{"input":"digest"}},{"c":…,"t":…,"p":{…}}]}`
//!
//! * `v`: format version; other versions are ignored and overwritten at the next change;
//! * `d`: detail: 0 fields, 1 lists, 2 roots, 3 whole;
//! * `g`: classes, the current one first: `c` name, `t` time of recording, `f` whether another program created it, `i`
//!   inputs, `p` inputs as a patch to those of the class after it (`null` removes), `o` digest of the owner's fields with
//!   `--roll-budget`;
//! * `w`: a wait for the planned class: `t` since when, `c` digest of the name of that class;
//! * `u`: mark of a roll that concerns the budget: `budget` or `released`.
//!
//! Older programs ignore `o`, `w` and `u`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::worker::plan::class_inputs::Detail;
use crate::worker::plan::class_inputs::Inputs;
use crate::worker::plan::class_inputs::history::{Generation, History, RecordedWait};
use crate::worker::plan::gate::Mark;

/// Maximum size of the annotation's value in bytes.
pub const MAXIMUM_SIZE: usize = 1024;
const VERSION: u64 = 1;

impl History {
    /// Parses an annotation; `None` for another format.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(text).ok()?;
        if document["v"].as_u64() != Some(VERSION) {
            return None;
        }
        let detail = Detail::of_number(document["d"].as_u64()?)?;
        let mut generations: Vec<Generation> = Vec::new();
        let mut after: Option<Inputs> = None;
        for entry in document["g"].as_array()? {
            let inputs = match (entry.get("i"), entry.get("p")) {
                (Some(inputs), _) => Some(patched(&Inputs::new(), inputs)?),
                (None, Some(patch)) => Some(patched(after.as_ref()?, patch)?),
                (None, None) => None,
            };
            generations.push(Generation {
                class: entry["c"].as_str()?.to_owned(),
                since: entry["t"].as_str()?.parse().ok()?,
                found: entry["f"].as_bool().unwrap_or_default(),
                inputs: inputs.clone(),
                owner: entry["o"].as_str().map(str::to_owned),
            });
            after = inputs.or(after);
        }
        let wait = wait_of(&document["w"]);
        let mark = Mark::of_name(document["u"].as_str().unwrap_or_default());
        (!generations.is_empty()).then_some(Self { detail, generations, wait, mark })
    }

    /// Serializes the record within the size limit, with less detail before the oldest class is dropped. `None` if not
    /// even the name of the current class fits, which no valid object has.
    #[must_use]
    pub fn write(&self) -> Option<String> {
        for remembered in (1..=self.generations.len()).rev() {
            let generations = &self.generations[..remembered];
            for detail in Detail::ALL.into_iter().filter(|detail| *detail >= self.detail) {
                let text = text_of(detail, generations, self);
                if text.len() <= MAXIMUM_SIZE {
                    return Some(text);
                }
            }
        }
        None
    }
}

fn wait_of(entry: &Value) -> Option<RecordedWait> {
    Some(RecordedWait { since: entry["t"].as_str()?.parse().ok()?, target: entry["c"].as_str()?.to_owned() })
}

fn text_of(detail: Detail, generations: &[Generation], history: &History) -> String {
    let mut after: Option<Inputs> = None;
    let entries = generations.iter().map(|generation| {
        let mut entry = json!({"c": generation.class, "t": seconds(generation.since)});
        if generation.found {
            entry["f"] = true.into();
        }
        if let Some(owner) = &generation.owner {
            entry["o"] = json!(owner);
        }
        if let Some(inputs) = &generation.inputs {
            let inputs = detail.of(inputs);
            match &after {
                None => entry["i"] = json!(inputs),
                Some(after) => entry["p"] = patch(after, &inputs),
            }
            after = Some(inputs);
        }
        entry
    });
    let entries: Vec<Value> = entries.collect();
    let mut document = json!({"v": VERSION, "d": detail.number(), "g": entries});
    if let Some(wait) = &history.wait {
        document["w"] = json!({"t": seconds(wait.since), "c": wait.target});
    }
    if let Some(mark) = history.mark {
        document["u"] = json!(mark.name());
    }
    document.to_string()
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn patch(from: &Inputs, to: &Inputs) -> Value {
    let removed = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, digest)| from.get(*name) != Some(digest));
    let changed = changed.map(|(name, digest)| (name.clone(), json!(digest)));
    Value::Object(removed.chain(changed).collect::<Map<_, _>>())
}

fn patched(from: &Inputs, patch: &Value) -> Option<Inputs> {
    let mut inputs = from.clone();
    for (name, digest) in patch.as_object()? {
        match digest {
            Value::Null => {
                inputs.remove(name);
            }
            digest => {
                inputs.insert(name.clone(), digest.as_str()?.to_owned());
            }
        }
    }
    Some(inputs)
}
