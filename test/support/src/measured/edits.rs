//! Expresses a document as edits of another, so that a case only shows what is specific to it.
//!
//! Edits are an object. A member that begins with `/` is a JSON pointer with the new value. Missing members are added,
//! and so is an item after the end of a list.
//!
//! | | |
//! |---|---|
//! | `$rename: {OLD: NEW}` | applied first, to every text and key that contains `OLD` as a word |
//! | `/POINTER: $absent` | removes the value; in a list also all later items |
//! | `/POINTER: {$like: /OTHER, …}` | a copy of another value after the preceding edits, with edits of its own |

use std::cmp::Ordering;

use serde_json::{Map, Value};

pub(super) const RENAME: &str = "$rename";
pub(super) const LIKE: &str = "$like";
pub(super) const ABSENT: &str = "$absent";

/// Applies edits to a document.
///
/// # Errors
/// If an edit does not fit the document.
pub fn edited(document: &Value, edits: &Value) -> Result<Value, String> {
    let members = match edits {
        Value::Null => return Ok(document.clone()),
        Value::Object(members) => members,
        other => return Err(format!("edits are an object, not {other}")),
    };
    let mut document = match members.get(RENAME) {
        Some(names) => renamed(document, &pairs(names)?),
        None => document.clone(),
    };
    let mut pointers: Vec<&String> = members.keys().filter(|key| ![RENAME, LIKE].contains(&key.as_str())).collect();
    pointers.sort_by(|left, right| in_order(left, right));
    for pointer in pointers {
        let edit = &members[pointer];
        if edit == ABSENT {
            remove(&mut document, pointer)?;
            continue;
        }
        let value = match edit.get(LIKE) {
            None => edit.clone(),
            Some(other) => {
                let other = other.as_str().and_then(|other| document.pointer(other));
                edited(other.ok_or_else(|| format!("{pointer} is like nothing"))?, edit)?
            }
        };
        *location(&mut document, pointer)? = value;
    }
    Ok(document)
}

/// Orders pointers by their steps, with numeric steps as numbers.
pub(super) fn in_order(left: &str, right: &str) -> Ordering {
    let steps = |pointer: &str| -> Vec<(Option<usize>, String)> {
        pointer.split('/').map(|step| (step.parse().ok(), step.to_owned())).collect()
    };
    steps(left).cmp(&steps(right))
}

fn split(pointer: &str) -> Result<(&str, String), String> {
    let (parent, step) = pointer.rsplit_once('/').ok_or_else(|| format!("{pointer:?} is no JSON pointer"))?;
    Ok((parent, step.replace("~1", "/").replace("~0", "~")))
}

/// The value at a pointer; a missing one is created as null.
fn location<'a>(document: &'a mut Value, pointer: &str) -> Result<&'a mut Value, String> {
    if pointer.is_empty() {
        return Ok(document);
    }
    let (parent, step) = split(pointer)?;
    let missing = || format!("there is no {pointer}");
    match document.pointer_mut(parent).ok_or_else(missing)? {
        Value::Object(members) => Ok(members.entry(step).or_insert(Value::Null)),
        Value::Array(items) => {
            let index: usize = step.parse().map_err(|_| missing())?;
            if index == items.len() {
                items.push(Value::Null);
            }
            items.get_mut(index).ok_or_else(missing)
        }
        _ => Err(missing()),
    }
}

/// Removes a member, or a list item and all items after it.
fn remove(document: &mut Value, pointer: &str) -> Result<(), String> {
    let (parent, step) = split(pointer)?;
    let removed = match document.pointer_mut(parent) {
        Some(Value::Object(members)) => members.remove(&step).is_some(),
        Some(Value::Array(items)) => match step.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.truncate(index);
                true
            }
            _ => false,
        },
        _ => false,
    };
    if removed { Ok(()) } else { Err(format!("there is no {pointer}")) }
}

fn pairs(names: &Value) -> Result<Vec<(&str, &str)>, String> {
    let members = names.as_object().into_iter().flatten();
    members.map(|(old, new)| Some((old.as_str(), new.as_str()?))).collect::<Option<_>>().ok_or("names are texts".into())
}

/// Replaces words in all texts and keys.
pub(super) fn renamed(value: &Value, names: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => renamed_text(text, names).into(),
        Value::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (renamed_text(key, names), renamed(member, names)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn renamed_text(text: &str, names: &[(&str, &str)]) -> String {
    let (mut renamed, mut rest, mut is_at_a_beginning) = (String::new(), text, true);
    while let Some(next) = rest.chars().next() {
        let ends = |old: &str| !rest[old.len()..].starts_with(char::is_alphanumeric);
        let found = names.iter().find(|(old, _)| is_at_a_beginning && rest.starts_with(old) && ends(old));
        let (taken, put) = match found {
            Some((old, new)) => (old.len(), *new),
            None => (next.len_utf8(), &rest[..next.len_utf8()]),
        };
        renamed.push_str(put);
        is_at_a_beginning = !rest[..taken].ends_with(char::is_alphanumeric);
        rest = &rest[taken..];
    }
    renamed
}
