//! Names use the terms of the field: one idea has one word, also in tests and examples.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::sources::walk;

/// Words that names must not contain, and the terms to use instead. Words with another meaning in Rust or Kubernetes
/// are not listed.
const OTHER_TERMS: &[(&[&str], &str)] = &[
    (&["ask", "asks", "asked"], "request, query, annotation"),
    (&["question", "questions"], "request, query"),
    (&["answer", "answers", "answered"], "response, result; complete"),
    (&["wanted", "wants"], "target, required, expected"),
    (&["shown", "shows"], "observed, displayed, output"),
    (&["told", "tell", "tells", "said", "say", "says"], "report, message, text"),
    (&["judge", "judged", "judges", "court"], "review, evaluate"),
    (&["anew"], "relist, recreate, again"),
    (&["doubt", "doubtful"], "unconfirmed"),
    (&["offer", "offered", "offers", "kin"], "resolved profile, selectable image, type group"),
    (&["place", "places"], "path, location; shoot namespace"),
    (&["asleep"], "hibernated"),
];
/// The same, for the rooms of the cache only.
const OTHER_TERMS_OF_CACHES: &[(&[&str], &str)] = &[(&["known"], "cached"), (&["gone", "goes"], "deleted")];
/// Folders to which these rules apply.
const FOLDERS: [&str; 6] = ["src", "test", "benches", "example", "release", "container-image"];
/// Exceptions: fields of Gardener's API, and tests that are named after a proposal's questions.
const ALLOWED: &str = r"(?i)in_?place|^question_";

/// Names that contain one of these words, such as `src/a.rs: asked_names; instead of "asked": request`.
pub(crate) fn other_terms() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| walk(&root.join(folder), &mut files));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    assert!(files.len() > 500, "{files:?}");
    let declared = Regex::new(
        r"(?m)\b(?:fn|struct|enum|trait|type|mod|const|static|let|let mut)\s+(\w+)|^\s+(?:pub(?:\([^)]*\))? )?(\w+): |^    ([A-Z]\w*)(?:,|\(| \{)",
    )
    .unwrap();
    let allowed = Regex::new(ALLOWED).unwrap();
    let mut found = Vec::new();
    for path in files {
        let file = path.strip_prefix(root).unwrap().to_str().unwrap();
        let is_cache = file.starts_with("src/runtime/cluster") || file.starts_with("src/controllers/controller");
        let caches = if is_cache { OTHER_TERMS_OF_CACHES } else { &[] };
        let text = fs::read_to_string(&path).unwrap();
        for names in declared.captures_iter(&text) {
            let name = names.iter().skip(1).flatten().next().unwrap().as_str();
            if allowed.is_match(name) {
                continue;
            }
            for (words, term) in OTHER_TERMS.iter().chain(caches) {
                if let Some(word) = has_word(name, words) {
                    found.push(format!("{file}: {name}; instead of {word:?}: {term}"));
                }
            }
        }
    }
    found
}

/// The first of `words` in a name such as `is_asked` or `AskedNames`.
fn has_word<'w>(name: &str, words: &[&'w str]) -> Option<&'w str> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() && parts.last().is_some_and(|part| part.ends_with(char::is_lowercase))
        {
            parts.push(String::new());
        }
        if letter != '_'
            && let Some(part) = parts.last_mut()
        {
            part.push(letter);
        }
    }
    words.iter().find(|word| parts.iter().any(|part| part.eq_ignore_ascii_case(word))).copied()
}
