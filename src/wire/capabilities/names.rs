//! Names of capabilities and their values: qualified names of Kubernetes without a prefix.

/// Maximum length of a name in bytes.
const LONGEST: usize = 63;

/// The reason why a text is not a qualified name without prefix; `None` if it is valid.
#[must_use]
pub fn not_a_name(text: &str) -> Option<String> {
    if text.contains('/') {
        return Some(format!("name {text:?} must not contain a prefix"));
    }
    if text.len() > LONGEST {
        return Some(format!("name part must be no more than {LONGEST} bytes"));
    }
    let is_inner = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let is_outer = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    let is_name = is_outer(text.chars().next()) && is_outer(text.chars().next_back()) && text.chars().all(is_inner);
    (!is_name).then(|| {
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes_without_prefix() {
        for name in ["a", "MyName", "my.name", "123-abc", "a_b", &"x".repeat(63)] {
            assert_eq!(not_a_name(name), None, "{name}");
        }
        for text in ["", "a b", "-a", "a-", ".", "a/b", "ä", &"x".repeat(64)] {
            assert!(not_a_name(text).is_some(), "{text}");
        }
    }
}
