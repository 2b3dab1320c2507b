//! The members of the JSON that commands print, from the outline `json_fields.txt`: an indented line is a member of the one above it.
//! A test compares them with what is really printed.

const OUTLINE: &str = include_str!("json_fields.txt");

/// A member of a document.
#[derive(Clone, Debug)]
pub struct Field {
    /// Where it is; `[]` is every entry of a list, `*` every key of a map.
    pub path: String,
    /// Its type.
    pub kind: &'static str,
    /// Whether it can be absent.
    pub optional: bool,
    /// What it says.
    pub meaning: &'static str,
}

/// The commands with JSON output, such as `explain -o json`, each with the members of its document.
#[must_use]
pub fn documents() -> Vec<(&'static str, Vec<Field>)> {
    let sections = OUTLINE.split("# ").filter_map(|section| section.split_once('\n'));
    sections.map(|(command, outline)| (command, fields(outline))).collect()
}

fn fields(outline: &'static str) -> Vec<Field> {
    let mut parents: Vec<&str> = Vec::new();
    let mut fields = Vec::new();
    for line in outline.lines().filter(|line| !line.is_empty()) {
        let text = line.trim_start();
        parents.truncate((line.len() - text.len()) / 2);
        let (member, description) = text.split_once(": ").unwrap_or((text, ""));
        parents.push(member.trim_end_matches('?'));
        if !description.is_empty() {
            let (kind, meaning) = description.split_once(": ").unwrap_or((description, ""));
            fields.push(Field { path: parents.join("."), kind, optional: member.ends_with('?'), meaning });
        }
    }
    fields
}
