//! What can't be decoded, in the words of the document and not of a decoder.

/// The message of a decoder in plain words: `a whole number is expected, not text`.
pub(super) fn plain(message: &str) -> String {
    let types = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, expected)) = types.and_then(|types| types.split_once(", expected ")) else {
        return message.to_owned();
    };
    let expected = match expected {
        "i32" | "i64" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    let found = match found {
        "string" => "text",
        "integer" | "number" => "a number",
        "boolean" => "true or false",
        "map" => "an object",
        "sequence" => "a list",
        "null" | "unit" => "nothing",
        other => other,
    };
    format!("{expected} is expected, not {found}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_word_of_the_decoder_is_left() {
        for (message, wanted) in [
            ("invalid type: string, expected struct ProfileSpec", "an object is expected, not text"),
            ("invalid type: map, expected i32", "a whole number is expected, not an object"),
            ("unknown field `a`, expected `b`", "unknown field `a`, expected `b`"),
        ] {
            assert_eq!(super::plain(message), wanted);
        }
    }
}
