//! Tables of broken documents: one change per line, `place = JSON`. `-` removes the member, `#` starts a comment.

use serde_json::Value;

/// A line of the table.
pub struct Case {
    pub line: &'static str,
    /// Path of the member, separated by slashes.
    pub location: &'static str,
    /// New value; `None` removes the member.
    pub value: Option<Value>,
}

/// Parses a table.
pub fn cases(table: &'static str) -> Vec<Case> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |line: &'static str| {
        let (location, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
        let value =
            (value != "-").then(|| serde_json::from_str(value).unwrap_or_else(|error| panic!("{line}: {error}")));
        Case { line, location, value }
    };
    lines.map(case).collect()
}

/// Sets or removes the value at a pointer. The parent must exist.
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
