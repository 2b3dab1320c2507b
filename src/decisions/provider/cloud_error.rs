//! Parses a cloud's error from the text of a driver or SDK: the error codes, the HTTP status, and the message for
//! people.
//!
//! ```text
//!  machine codes error: code = [ResourceExhausted] message = [PUT https://management.azure.com/…     driver's code, noise
//!  RESPONSE 409: 409 Conflict                                                                        HTTP status
//!  ERROR CODE: SkuNotAvailable                                                                       code
//!  {"error": {"code": "SkuNotAvailable", "message": "The requested size …", "details": […]}}]        codes, words
//! ```

use serde_json::Value;

/// Longer texts are cut. Responses of clouds have a few thousand bytes, and parsing runs for each failed machine.
const MOST_BYTES: usize = 16 * 1024;
/// Maximum number of JSON documents parsed in one text.
const MAX_DOCUMENTS: usize = 16;
/// Maximum depth of nested errors.
const MAX_DEPTH: usize = 8;

/// Prefix of errors from Google's client.
const GOOGLE: &str = "googleapi: Error ";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CloudError {
    /// The cloud's codes, such as `SkuNotAvailable`, most specific first.
    pub(super) codes: Vec<String>,
    /// The code of machine-controller-manager's driver, such as `ResourceExhausted`.
    pub(super) driver_code: Option<String>,
    /// HTTP status of the response.
    pub(super) http_status: Option<u16>,
    /// Message in lower case, without addresses, names and status lines.
    pub(super) words: String,
}

impl CloudError {
    pub(super) fn read(text: &str) -> Self {
        let text = cut(text);
        let mut found = Found::default();
        let prose = found.take_documents(text, 0);
        // Nested codes are more specific.
        found.codes.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
        let mut codes: Vec<String> = found.codes.into_iter().map(|(_, code)| code).collect();
        codes.extend(codes_in_prose(&prose));
        let mut seen = std::collections::BTreeSet::new();
        codes.retain(|code| seen.insert(code.to_lowercase()));
        let mut words = words_of(&prose);
        for message in &found.messages {
            words.push('\n');
            words.push_str(&words_of(message));
        }
        Self { codes, driver_code: between(&prose, "code = [", "]"), http_status: http_status(&prose), words }
    }
}

fn cut(text: &str) -> &str {
    if text.len() <= MOST_BYTES {
        return text;
    }
    let end = (0..=MOST_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    &text[..end]
}

/// Codes with their depth and messages, collected from JSON documents.
#[derive(Default)]
struct Found {
    codes: Vec<(usize, String)>,
    messages: Vec<String>,
}

impl Found {
    /// Collects the JSON documents in a text and returns the text without them.
    fn take_documents(&mut self, text: &str, level: usize) -> String {
        let mut prose = String::with_capacity(text.len());
        let mut rest = text;
        for _ in 0..MAX_DOCUMENTS {
            let Some(start) = rest.find('{') else { break };
            let mut documents = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
            match documents.next() {
                Some(Ok(document)) => {
                    prose.push_str(&rest[..start]);
                    prose.push(' ');
                    rest = &rest[start + documents.byte_offset()..];
                    self.take_error(&document, level);
                }
                _ => {
                    prose.push_str(&rest[..=start]);
                    rest = &rest[start + 1..];
                }
            }
        }
        prose.push_str(rest);
        prose
    }

    fn take_error(&mut self, error: &Value, level: usize) {
        if level >= MAX_DEPTH {
            return;
        }
        match error {
            Value::Array(errors) => errors.iter().for_each(|error| self.take_error(error, level)),
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.to_lowercase().as_str(), member) {
                        // OAuth returns {"error": "invalid_client", "error_description": "…"}.
                        ("code" | "__type" | "error" | "errorcode", Value::String(code)) => {
                            self.codes.push((level, code.clone()));
                        }
                        ("message" | "error_description" | "error_message" | "errormessage", Value::String(text)) => {
                            let message = self.take_documents(text, level + 1);
                            self.messages.push(message);
                        }
                        ("error" | "details" | "innererror" | "inner" | "errors" | "properties", inner) => {
                            self.take_error(inner, level + 1);
                        }
                        // OpenStack: Neutron's error has a type; errors of other services use the name of the member as
                        // their code.
                        ("neutronerror", Value::Object(fault)) => {
                            let code = fault.get("type").and_then(Value::as_str);
                            self.codes.extend(code.map(|code| (level, code.to_owned())));
                            self.take_error(member, level + 1);
                        }
                        (_, Value::Object(fault)) if fault.get("code").is_some_and(Value::is_number) => {
                            self.codes.push((level, name.clone()));
                            self.take_error(member, level + 1);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// Codes at the places where SDKs print them.
fn codes_in_prose(prose: &str) -> Vec<String> {
    // Azure SDK, legacy Azure SDK, AWS SDK v2, AWS CLI, AWS XML responses.
    const LOCATIONS: [(&str, &str); 5] = [
        ("ERROR CODE: ", "\n"),
        ("Code=\"", "\""),
        ("api error ", ":"),
        ("An error occurred (", ")"),
        ("<Code>", "</Code>"),
    ];
    let mut codes: Vec<String> = Vec::new();
    for (before, after) in LOCATIONS {
        for (start, _) in prose.match_indices(before) {
            let rest = &prose[start + before.len()..];
            let code = rest.split_once(after).map_or(rest, |(code, _)| code);
            codes.extend(code.split_whitespace().next().filter(|code| is_code(code)).map(str::to_owned));
        }
    }
    for (start, _) in prose.match_indices(GOOGLE) {
        // `googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0 in region …, quotaExceeded]`
        let line = prose[start..].lines().next().unwrap_or_default().trim_end_matches(']');
        codes.extend(line.rsplit_once(", ").map(|(_, code)| code).filter(|code| is_code(code)).map(str::to_owned));
    }
    for (end, _) in prose.match_indices("status code: ") {
        // `InsufficientInstanceCapacity: We currently … \n\tstatus code: 500, request id: …`
        let line = prose[..end].trim_end().rsplit('\n').next().unwrap_or_default();
        let candidates = line.split(": ").map(|part| part.rsplit([' ', '[']).next().unwrap_or_default());
        codes.extend(candidates.filter(|code| is_code(code)).map(str::to_owned));
    }
    codes
}

/// Whether a word may be an error code: a single identifier.
fn is_code(word: &str) -> bool {
    word.len() > 3
        && word.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_'))
}

fn between(text: &str, before: &str, after: &str) -> Option<String> {
    Some(text.split_once(before)?.1.split_once(after)?.0.to_owned())
}

fn http_status(prose: &str) -> Option<u16> {
    let after = |label: &str| {
        let digits = prose.split_once(label)?.1.trim_start_matches([' ', '\'']).get(..3)?;
        digits.parse().ok().filter(|status| (400..600).contains(status))
    };
    ["RESPONSE ", "StatusCode=", "StatusCode: ", "Status Code = ", "status code: ", GOOGLE, "but got "]
        .into_iter()
        .find_map(after)
}

/// The words of a text in lower case. Drops status lines and everything that may contain misleading words: addresses,
/// resource ids, and names of shoots and machines (a project may be called `quota`).
fn words_of(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for line in text.lines() {
        let is_status_line = line.trim_start().starts_with("RESPONSE ") || line.starts_with("-----");
        if is_status_line {
            continue;
        }
        for word in line.split_inclusive([' ', '\t', ',', ';', '\'', '"', '(', ')', '[', ']', '{', '}', '<', '>']) {
            let bare = word.to_lowercase();
            let is_name = bare.contains("://") || bare.contains("--") || bare.matches('/').count() > 1;
            words.push_str(if is_name { " " } else { &bare });
        }
        words.push('\n');
    }
    // These generic status phrases would match the phrases of specific errors.
    for (reason, kept) in [
        ("409 conflict", "409"),
        ("404 not found", "404"),
        ("401 unauthorized", "401"),
        ("400 bad request", "400"),
        ("deadline exceeded", "deadline"),
    ] {
        if words.contains(reason) {
            words = words.replace(reason, kept);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_azure_errors() {
        let error = CloudError::read(
            "machine codes error: code = [ResourceExhausted] message = [PUT https://management.azure.com/a/quota\n\
             --------\nRESPONSE 409: 409 Conflict\nERROR CODE: SkuNotAvailable\n--------\n\
             {\"error\": {\"code\": \"SkuNotAvailable\", \"message\": \"The requested size is not available.\"}}\n]",
        );
        assert_eq!(error.codes, ["SkuNotAvailable"]);
        assert_eq!(error.driver_code.as_deref(), Some("ResourceExhausted"));
        assert_eq!(error.http_status, Some(409));
        assert!(error.words.contains("requested size"), "{}", error.words);
        for noise in ["quota", "conflict"] {
            assert!(!error.words.contains(noise), "{}", error.words);
        }
    }

    #[test]
    fn innermost_code_comes_first() {
        let error = CloudError::read(
            r#"{"status":"Failed","error":{"code":"DeploymentFailed","message":"At least one operation failed.","details":[
                {"code":"Conflict","message":"{\"error\":{\"code\":\"ZonalAllocationFailed\",\"message\":\"no room\"}}"}]}}"#,
        );
        assert_eq!(error.codes, ["ZonalAllocationFailed", "Conflict", "DeploymentFailed"]);
        assert!(error.words.contains("no room"), "{}", error.words);
    }

    #[test]
    fn the_sdks_of_aws_are_read() {
        for text in [
            "operation error EC2: RunInstances, https response error StatusCode: 500, RequestID: 1f, api error \
             InsufficientInstanceCapacity: We currently do not have sufficient capacity",
            "InsufficientInstanceCapacity: We currently do not have it\n\tstatus code: 500, request id: 1f",
            "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation",
        ] {
            assert!(CloudError::read(text).codes.contains(&"InsufficientInstanceCapacity".to_owned()), "{text}");
        }
    }

    #[test]
    fn names_are_no_words() {
        let words =
            CloudError::read("machine 'shoot--quota--exceeded-a-z1-5d4f' of /subscriptions/conflict/x is new").words;
        assert!(!words.contains("quota") && !words.contains("conflict"), "{words}");
    }
}
