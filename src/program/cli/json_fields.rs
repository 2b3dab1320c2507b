//! Describes the JSON output of commands, from the outline `json_fields.txt`. An indented line is a member of the line
//! above; `like COMMAND: MEMBER` repeats the members of a document described earlier. A test compares the outline with
//! actual output.

const OUTLINE: &str = include_str!("json_fields.txt");

/// A member of a JSON document.
#[derive(Clone, Debug)]
pub struct Field {
    /// Path in the document. `[]` is every list entry, `*` every map key.
    pub path: String,
    /// JSON type.
    pub kind: &'static str,
    /// Whether it can be absent.
    pub optional: bool,
    /// Description for readers of the output.
    pub meaning: &'static str,
}

/// Commands with JSON output, such as `explain -o json`, each with the members of its document.
#[must_use]
pub fn documents() -> Vec<(&'static str, Vec<Field>)> {
    let sections = OUTLINE.split("# ").filter_map(|section| section.split_once('\n'));
    let mut documents: Vec<(&str, Vec<Field>)> = Vec::new();
    for (command, outline) in sections {
        documents.push((command, Vec::new()));
        describe(outline, &mut documents);
    }
    documents
}

/// Parses one section of the outline into the last document.
fn describe(outline: &'static str, documents: &mut [(&'static str, Vec<Field>)]) {
    let mut parents: Vec<&str> = Vec::new();
    for line in outline.lines().filter(|line| !line.is_empty()) {
        let text = line.trim_start();
        parents.truncate((line.len() - text.len()) / 2);
        let fields = match text.strip_prefix("like ").and_then(|like| like.split_once(": ")) {
            Some((command, member)) => {
                let described = documents.iter().filter(|(known, _)| *known == command);
                let below = described.flat_map(|(_, fields)| fields).filter_map(|field| {
                    let path = field.path.strip_prefix(member)?.strip_prefix('.')?;
                    Some(Field { path: format!("{}.{path}", parents.join(".")), ..field.clone() })
                });
                below.collect()
            }
            None => {
                let (member, description) = text.split_once(": ").unwrap_or((text, ""));
                parents.push(member.trim_end_matches('?'));
                let (kind, meaning) = description.split_once(": ").unwrap_or((description, ""));
                vec![Field { path: parents.join("."), kind, optional: member.ends_with('?'), meaning }]
            }
        };
        let of_document = documents.last_mut().map(|(_, fields)| fields);
        of_document
            .into_iter()
            .for_each(|known| known.extend(fields.iter().filter(|field| !field.kind.is_empty()).cloned()));
    }
}
