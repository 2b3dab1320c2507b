//! The difference of two documents as a list of named changes, each of which can be applied without the others.
//!
//! Entries of lists of objects are matched by their identifying fields (`name`, `version`, `key` …), so that inserting
//! an entry is one change and does not change all entries after it. Lists of plain values are compared as one value.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The object that a change belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChangedObject {
    /// The Worker.
    Worker,
    /// The CloudProfile of the Cluster.
    CloudProfile,
    /// The Shoot of the Cluster.
    Shoot,
    /// A Secret; its values are never printed.
    Secret {
        /// Namespace of the Secret.
        namespace: String,
        /// Name of the Secret.
        name: String,
    },
    /// A live MachineDeployment that differs from what its Worker renders to.
    MachineDeployment,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// A field of an object.
    Member(String),
    /// A key of a map, such as a label.
    Key(String),
    /// An entry of a list, by its identifying fields.
    #[serde(deserialize_with = "entry")]
    Entry(Name),
    /// An entry of a list, by position.
    Index(usize),
}

/// The path of a change in its document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path(pub Vec<Step>);

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The object that changes.
    pub object: ChangedObject,
    /// Its path in the object.
    pub path: Path,
    /// The old value.
    pub old: Option<Value>,
    /// The new value. For the order of a list, the names of its entries.
    pub new: Option<Value>,
    /// How to apply the change.
    pub kind: ChangeKind,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    /// Sets or removes a field.
    Value,
    /// Inserts an entry into a list, at this position.
    Insert(usize),
    /// Removes an entry from a list.
    Remove,
    /// Reorders the entries of a list.
    Order,
}

/// Fields that can identify the entries of a list. The first combination that every entry has and that is unique is
/// used.
const NAMES: [&[&str]; 7] =
    [&["name"], &["version"], &["version", "architecture"], &["key", "effect"], &["key"], &["poolName"], &["region"]];

/// Fields that are maps with free keys.
const MAPS: [&str; 7] = ["labels", "annotations", "capacity", "virtualCapacity", "capabilities", "data", "matchLabels"];

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Member(name) if index == 0 => formatter.write_str(name)?,
                Step::Member(name) => write!(formatter, ".{name}")?,
                Step::Key(key) => write!(formatter, "[{key}]")?,
                Step::Entry(names) => {
                    let names: Vec<_> = names.iter().map(|(_, value)| value.as_str()).collect();
                    write!(formatter, "[{}]", names.join("/"))?;
                }
                Step::Index(position) => write!(formatter, "[{position}]")?,
            }
        }
        Ok(())
    }
}

impl Path {
    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

/// Everything that differs below the given fields of two documents.
pub(super) fn difference(object: &ChangedObject, old: &Value, new: &Value, members: &[&str]) -> Vec<Change> {
    let mut finder = Finder { object, changes: Vec::new() };
    for member in members {
        let path = Path(member.split('.').map(|member| Step::Member(member.to_owned())).collect());
        let pointer = format!("/{}", member.replace('.', "/"));
        finder.compare(&path, old.pointer(&pointer), new.pointer(&pointer));
    }
    finder.changes
}

struct Finder<'a> {
    object: &'a ChangedObject,
    changes: Vec<Change>,
}

impl Finder<'_> {
    fn push(&mut self, path: Path, old: Option<&Value>, new: Option<&Value>, kind: ChangeKind) {
        let object = self.object.clone();
        self.changes.push(Change { object, path, old: old.cloned(), new: new.cloned(), kind });
    }

    fn compare(&mut self, path: &Path, old: Option<&Value>, new: Option<&Value>) {
        // A null is equal to an absent value everywhere; an empty object is not.
        let (old, new) = (old.filter(|value| !value.is_null()), new.filter(|value| !value.is_null()));
        if old == new {
            return;
        }
        let is_map = matches!(path.0.last(), Some(Step::Member(name)) if MAPS.contains(&name.as_str()));
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.compare_members(path, is_map, old, new),
            (None, Some(Value::Object(new))) if is_map && !new.is_empty() => {
                self.compare_members(path, true, &Map::new(), new);
            }
            (Some(Value::Object(old)), None) if is_map && !old.is_empty() => {
                self.compare_members(path, true, old, &Map::new());
            }
            (Some(Value::Array(old_entries)), Some(Value::Array(new_entries))) => {
                self.compare_lists(path, (old_entries, new_entries), old, new);
            }
            _ => self.push(path.clone(), old, new, ChangeKind::Value),
        }
    }

    fn compare_members(&mut self, path: &Path, is_map: bool, old: &Map<String, Value>, new: &Map<String, Value>) {
        let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        for name in names {
            let step = if is_map { Step::Key(name.clone()) } else { Step::Member(name.clone()) };
            self.compare(&path.with(step), old.get(name), new.get(name));
        }
    }

    fn compare_lists(
        &mut self,
        path: &Path,
        (old_entries, new_entries): (&[Value], &[Value]),
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let is_plain = |entries: &[Value]| !entries.iter().all(Value::is_object);
        if is_plain(old_entries) || is_plain(new_entries) {
            return self.push(path.clone(), old, new, ChangeKind::Value);
        }
        let named = NAMES.iter().find_map(|names| Some((names_of(old_entries, names)?, names_of(new_entries, names)?)));
        let named = named
            .filter(|(old_names, new_names)| !is_renaming(path, (old_entries, old_names), (new_entries, new_names)));
        let Some((old_names, new_names)) = named else {
            if old_entries.len() != new_entries.len() || is_reordered(old_entries, new_entries) {
                return self.push(path.clone(), old, new, ChangeKind::Value);
            }
            for (index, (old, new)) in old_entries.iter().zip(new_entries).enumerate() {
                self.compare(&path.with(Step::Index(index)), Some(old), Some(new));
            }
            return;
        };
        for (name, entry) in old_names.iter().zip(old_entries) {
            match new_names.iter().position(|other| other == name) {
                Some(index) => {
                    self.compare(&path.with(Step::Entry(name.clone())), Some(entry), new_entries.get(index));
                }
                None => self.push(path.with(Step::Entry(name.clone())), Some(entry), None, ChangeKind::Remove),
            }
        }
        let kept = |names: &[Name], others: &[Name]| -> Vec<Name> {
            names.iter().filter(|name| others.contains(name)).cloned().collect()
        };
        let old_order = kept(&old_names, &new_names);
        let new_order = kept(&new_names, &old_names);
        if old_order != new_order {
            self.push(path.clone(), Some(&texts(&old_order)), Some(&texts(&new_names)), ChangeKind::Order);
        }
        for (index, (name, entry)) in new_names.iter().zip(new_entries).enumerate() {
            if !old_names.contains(name) {
                self.push(path.with(Step::Entry(name.clone())), None, Some(entry), ChangeKind::Insert(index));
            }
        }
    }
}

/// The identifying fields of a list entry, with their values.
type Name = Vec<(&'static str, String)>;

/// Decodes a name. Only fields in `NAMES` are valid.
fn entry<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let written: Vec<(String, String)> = Vec::deserialize(deserializer)?;
    let known = |(member, text): (String, String)| {
        let mut members = NAMES.iter().copied().flatten().copied();
        Some((members.find(|known| *known == member)?, text))
    };
    written.into_iter().map(known).collect::<Option<_>>().ok_or_else(|| D::Error::custom("no name of an entry"))
}

fn names_of(entries: &[Value], members: &[&'static str]) -> Option<Vec<Name>> {
    let names: Vec<Name> = entries.iter().map(|entry| name_of(entry, members)).collect::<Option<_>>()?;
    let unique: BTreeSet<_> = names.iter().collect();
    (unique.len() == names.len()).then_some(names)
}

fn name_of(entry: &Value, members: &[&'static str]) -> Option<Name> {
    members.iter().map(|member| Some((*member, entry.get(member)?.as_str()?.to_owned()))).collect()
}

/// The names of entries as a value, for changes of the order of a list.
fn texts(names: &[Name]) -> Value {
    names.iter().map(|name| name.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("/")).collect()
}

/// Whether entries changed only their names and kept their positions. This never applies to pools, because a renamed
/// pool is another pool.
fn is_renaming(path: &Path, (old, old_names): (&[Value], &[Name]), (new, new_names): (&[Value], &[Name])) -> bool {
    let is_pools = matches!(path.0.last(), Some(Step::Member(name)) if name == "pools");
    let deleted: Vec<_> = (0..old.len()).filter(|index| !new_names.contains(&old_names[*index])).collect();
    let come: Vec<_> = (0..new.len()).filter(|index| !old_names.contains(&new_names[*index])).collect();
    let rest = |entry: &Value, name: &Name| {
        let mut rest = entry.clone();
        if let Value::Object(members) = &mut rest {
            members.retain(|member, _| name.iter().all(|(named, _)| named != member));
        }
        rest
    };
    !is_pools
        && !deleted.is_empty()
        && deleted == come
        && deleted.iter().all(|index| rest(&old[*index], &old_names[*index]) == rest(&new[*index], &new_names[*index]))
}

/// Whether both lists have the same entries in another order.
pub(super) fn is_reordered(old: &[Value], new: &[Value]) -> bool {
    let mut left: Vec<&Value> = old.iter().collect();
    old != new
        && old.len() == new.len()
        && new.iter().all(|entry| {
            let location = left.iter().position(|other| *other == entry);
            location.map(|location| left.swap_remove(location)).is_some()
        })
}

/// Applies the changes to the document. Changes whose path does not exist are ignored.
pub(super) fn apply<'a>(document: &Value, changes: impl IntoIterator<Item = &'a Change>) -> Value {
    let mut changed = document.clone();
    for change in changes {
        let Some((last, parents)) = change.path.0.split_last() else { continue };
        match change.kind {
            ChangeKind::Order => {
                if let Some(Value::Array(entries)) = location(&mut changed, &change.path.0) {
                    reorder(entries, change.new.as_ref());
                }
            }
            ChangeKind::Value => {
                if let Some(location) = location(&mut changed, parents) {
                    set(location, last, change.new.as_ref());
                }
            }
            ChangeKind::Remove => {
                if let (Some(Value::Array(entries)), Step::Entry(name)) = (location(&mut changed, parents), last) {
                    entries.retain(|entry| !has_name(entry, name));
                }
            }
            ChangeKind::Insert(index) => {
                if let (Some(Value::Array(entries)), Some(entry)) = (location(&mut changed, parents), &change.new) {
                    entries.insert(index.min(entries.len()), entry.clone());
                }
            }
        }
    }
    changed
}

fn location<'a>(document: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    steps.iter().try_fold(document, |location, step| match step {
        Step::Member(name) | Step::Key(name) => {
            if location.is_null() {
                *location = Value::Object(Map::new());
            }
            Some(location.as_object_mut()?.entry(name.as_str()).or_insert(Value::Null))
        }
        Step::Entry(name) => location.as_array_mut()?.iter_mut().find(|entry| has_name(entry, name)),
        Step::Index(index) => location.get_mut(*index),
    })
}

fn set(location: &mut Value, last: &Step, value: Option<&Value>) {
    let (Step::Member(name) | Step::Key(name)) = last else {
        let Step::Index(index) = last else { return };
        if let (Some(entry), Some(value)) = (location.get_mut(*index), value) {
            *entry = value.clone();
        }
        return;
    };
    if location.is_null() {
        *location = Value::Object(Map::new());
    }
    let Some(members) = location.as_object_mut() else { return };
    match value {
        Some(value) => members.insert(name.clone(), value.clone()),
        None => members.remove(name),
    };
}

fn has_name(entry: &Value, name: &[(&'static str, String)]) -> bool {
    name.iter().all(|(member, text)| entry.get(member).and_then(Value::as_str) == Some(text))
}

/// Entries that the new order does not name are moved to the end and keep their order.
fn reorder(entries: &mut [Value], order: Option<&Value>) {
    let Some(order) = order.and_then(Value::as_array) else { return };
    let Some(names) = NAMES.iter().find_map(|members| names_of(entries, members)) else { return };
    let Value::Array(texts) = texts(&names) else { return };
    let rank = |index: usize| order.iter().position(|text| Some(text) == texts.get(index)).unwrap_or(order.len());
    let mut indices: Vec<usize> = (0..entries.len()).collect();
    indices.sort_by_key(|index| rank(*index));
    let sorted: Vec<Value> = indices.into_iter().filter_map(|index| entries.get(index).cloned()).collect();
    entries.clone_from_slice(&sorted);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(old: &Value, new: &Value) -> Vec<String> {
        let old = json!({"spec": old});
        let new = json!({"spec": new});
        let changes = difference(&ChangedObject::Worker, &old, &new, &["spec"]);
        assert_eq!(apply(&old, &changes), new, "all changes together lead to the new document");
        changes.iter().map(|change| change.path.to_string()).collect()
    }

    #[test]
    fn entries_are_matched_by_name() {
        let old = json!({"pools": [{"name": "a", "maximum": 1}, {"name": "b", "labels": {"x/y": "1"}}]});
        let new = json!({"pools": [{"name": "n"}, {"name": "b", "labels": {"x/y": "2"}}, {"name": "a", "maximum": 2}]});
        assert_eq!(
            paths(&old, &new),
            ["spec.pools[a].maximum", "spec.pools[b].labels[x/y]", "spec.pools", "spec.pools[n]"]
        );
    }

    #[test]
    fn a_renamed_entry_is_one_change_but_a_renamed_pool_is_another_pool() {
        let subnets = |name: &str| json!({"subnets": [{"name": name, "zone": "1"}, {"name": "z", "zone": "2"}]});
        assert_eq!(paths(&subnets("x"), &subnets("y")), ["spec.subnets[0].name"]);
        assert_eq!(
            paths(&json!({"pools": [{"name": "a"}]}), &json!({"pools": [{"name": "b"}]})),
            ["spec.pools[a]", "spec.pools[b]"]
        );
    }

    #[test]
    fn plain_lists_are_one_value_and_maps_are_compared_by_key() {
        assert_eq!(paths(&json!({"zones": ["1"]}), &json!({"zones": ["1", "2"]})), ["spec.zones"]);
        assert_eq!(paths(&json!({"a": 1}), &json!({"a": 1, "labels": {"k": "v"}})), ["spec.labels[k]"]);
        assert_eq!(paths(&json!({}), &json!({"volume": {"size": "1"}})), ["spec.volume"]);
    }
}
