//! Broken documents as tables: one change a line, `place = JSON`; `-` takes the member away, `#` begins a comment.

use serde_json::Value;

/// A line: where, and what stands there; nothing takes the member away.
pub struct Case {
    /// The whole line.
    pub line: &'static str,
    /// Where, its members separated by slashes.
    pub place: &'static str,
    /// What stands there.
    pub value: Option<Value>,
}

/// The lines of a table.
pub fn cases(table: &'static str) -> Vec<Case> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |line: &'static str| {
        let (place, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
        let value =
            (value != "-").then(|| serde_json::from_str(value).unwrap_or_else(|error| panic!("{line}: {error}")));
        Case { line, place, value }
    };
    lines.map(case).collect()
}

/// Puts the value where the pointer leads; the parent must be there.
pub fn put(document: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, member) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}: nothing there"));
    match (parent, value) {
        (Value::Array(items), Some(value)) => items[member.parse::<usize>().expect("an index")] = value,
        (parent, Some(value)) => parent[member] = value,
        (Value::Object(members), None) => {
            drop(members.remove(member).unwrap_or_else(|| panic!("{pointer}: not there")))
        }
        (other, None) => panic!("{pointer}: {other}"),
    }
}
