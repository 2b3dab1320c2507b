//! Maps errors of machine-controller-manager's drivers to Gardener's error codes.
//!
//! The cloud's own code takes precedence. If it is missing or ambiguous, known words are searched, then the driver's
//! code and the HTTP status are used. A failure has one cause, so a text results in at most one code. Codes that stop
//! Gardener from retrying are used only if a person has to act.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

use super::cloud_error::CloudError;
use wire::api::gardener::ErrorCode;

/// Known errors of one cloud.
pub struct KnownErrors {
    codes: ErrorNames,
    texts: ErrorTexts,
    /// The meanings of `codes`, since a text may have thousands of words to look up.
    meanings: OnceLock<HashMap<&'static str, Option<ErrorCode>>>,
}

impl KnownErrors {
    /// Known errors with these codes of the cloud and phrases specific to it. For a `static`, so that codes are
    /// prepared for their look-up only once.
    #[must_use]
    pub const fn new(codes: ErrorNames, texts: ErrorTexts) -> Self {
        Self { codes, texts, meanings: OnceLock::new() }
    }

    /// The meaning of a code in lower case.
    fn meaning(&self, code: &str) -> Option<ErrorCode> {
        match self.meanings.get_or_init(|| meanings(self.codes)).get(code) {
            Some(meaning) => *meaning,
            None => missing_object(code),
        }
    }
}

/// The meaning of each name. The first entry of a name wins.
fn meanings(codes: ErrorNames) -> HashMap<&'static str, Option<ErrorCode>> {
    let mut meanings = HashMap::new();
    for (meaning, names) in codes {
        for name in names.split(' ') {
            meanings.entry(name).or_insert(*meaning);
        }
    }
    meanings
}

/// Cloud error codes in lower case, separated by spaces, with their meaning; `None` if the message has to explain them.
pub type ErrorNames = &'static [(Option<ErrorCode>, &'static str)];

/// Phrases with the Gardener code that each implies; the first match wins.
///
/// Matching is case-insensitive, so phrases are in lower case. `a.*b` matches `a` followed by a nearby `b` on the same
/// line; `(?<!a)b` matches a `b` that does not directly follow an `a`.
pub type ErrorTexts = &'static [(ErrorCode, &'static [&'static str])];

/// Phrases common to all clouds, including limits of Gardener, SDKs and terraform.
const COMMON_TEXTS: ErrorTexts = &[
    (
        ErrorCode::InfraRateLimitsExceeded,
        &["requestlimitexceeded", "throttling", "throttled", "too many requests", "toomanyrequests"],
    ),
    (
        ErrorCode::InfraQuotaExceeded,
        &[
            "(?<!request)limitexceeded",
            "quotas",
            "quota.*exceeded",
            "exceeded quota",
            "quota has been met",
            "quota_exceeded",
            "exceeding approved.*quota",
        ],
    ),
    (ErrorCode::InfraResourcesDepleted, &["not available in the current hardware cluster", "out of stock"]),
    (ErrorCode::RetryableInfraDependencies, &["retryableerror", "internalservererror", "internal server error"]),
    (
        ErrorCode::RetryableConfigurationProblem,
        &[
            "is misconfigured and requires zero voluntary evictions",
            "sdk.cannotresolveendpoint",
            "the requested configuration is currently not supported",
        ],
    ),
    (ErrorCode::InfraUnauthenticated, &["invalidaccesskeyid", "invalidsecretaccesskey", "cannot fetch token"]),
    (ErrorCode::InfraUnauthorized, &["signaturedoesnotmatch", "accessdenied", "not authorized", "unauthorized"]),
    (
        ErrorCode::InfraDependencies,
        &[
            "pendingverification",
            "access not configured",
            "accessnotconfigured",
            "dependencyviolation",
            "optinrequired",
            "deleteconflict",
            "inactive billing state",
            "timeout while waiting for state to become",
            "invalidcidrblock",
            "already busy for",
            "a resource with the id",
        ],
    ),
    (
        ErrorCode::ConfigurationProblem,
        &[
            "not supported in your requested availability zone",
            "invalidparameter",
            "invalid value",
            "violates constraint",
            "no attached internet gateway found",
            "your query returned no results",
            "invalid vpc attributes",
            "unrecognized feature gate",
            "runtime-config invalid key",
            // The first is from Gardener's list, the second is the text of Kubernetes.
            "strict decoder error",
            "strict decoding error",
            "not allowed to configure an unsupported",
            "error during apply of object.*is invalid:",
            "duplicate zones",
            "overlapping zones",
        ],
    ),
];

/// Unambiguous driver codes.
const DRIVER_CODES: &[(&str, ErrorCode)] = &[
    ("ResourceExhausted", ErrorCode::InfraResourcesDepleted),
    ("Unauthenticated", ErrorCode::InfraUnauthenticated),
    ("PermissionDenied", ErrorCode::InfraUnauthorized),
    ("InvalidArgument", ErrorCode::ConfigurationProblem),
];

/// Maximum distance between the two parts of a pattern with a gap.
const MAX_GAP: usize = 100;

/// The Gardener code for a failed machine; empty if unknown.
#[must_use]
pub fn error_codes(known: &KnownErrors, driver_code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
    let error = CloudError::read(text);
    let code = by_cloud_code(known, &error)
        .or_else(|| by_words(known, &error.words))
        .or_else(|| by_driver_code(driver_code.or(error.driver_code.as_deref())))
        .or_else(|| by_http_status(error.http_status));
    code.into_iter().collect()
}

fn by_cloud_code(known: &KnownErrors, error: &CloudError) -> Option<ErrorCode> {
    error.codes.iter().find_map(|code| known.meaning(&code.to_lowercase()))
}

/// `ResourceGroupNotFound`, `InvalidSubnetID.NotFound`: the configuration refers to a missing object.
fn missing_object(code: &str) -> Option<ErrorCode> {
    let object = code.strip_suffix("notfound")?;
    (!object.is_empty()).then_some(ErrorCode::ConfigurationProblem)
}

fn by_words(known: &KnownErrors, words: &str) -> Option<ErrorCode> {
    if let Some(code) = matching(known.texts, words).or_else(|| matching(COMMON_TEXTS, words)) {
        return Some(code);
    }
    let mut named = words.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_')));
    named.find_map(|word| known.meaning(word.trim_end_matches('.')))
}

fn matching(texts: ErrorTexts, words: &str) -> Option<ErrorCode> {
    let (code, _) = texts.iter().find(|(_, patterns)| patterns.iter().any(|pattern| is_in(pattern, words)))?;
    Some(*code)
}

fn by_driver_code(driver_code: Option<&str>) -> Option<ErrorCode> {
    DRIVER_CODES.iter().find(|(driver, _)| driver_code == Some(*driver)).map(|(_, code)| *code)
}

fn by_http_status(status: Option<u16>) -> Option<ErrorCode> {
    match status? {
        401 => Some(ErrorCode::InfraUnauthenticated),
        403 => Some(ErrorCode::InfraUnauthorized),
        429 => Some(ErrorCode::InfraRateLimitsExceeded),
        500.. => Some(ErrorCode::RetryableInfraDependencies),
        _ => None,
    }
}

fn is_in(pattern: &str, text: &str) -> bool {
    if let Some((before, target)) = pattern.strip_prefix("(?<!").and_then(|rest| rest.split_once(')')) {
        return text.match_indices(target).any(|(start, _)| !text[..start].ends_with(before));
    }
    match pattern.split_once(".*") {
        None => text.contains(pattern),
        Some((first, second)) => text.lines().any(|line| {
            line.match_indices(first).any(|(start, _)| {
                let behind = &line[start + first.len()..];
                behind.find(second).is_some_and(|gap| gap <= MAX_GAP)
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::provider::Provider;
    use wire::api::gotext::yaml;

    #[test]
    fn patterns_have_gaps_and_forbidden_beginnings() {
        assert!(is_in("quota.*exceeded", "the quota for cores is exceeded"));
        assert!(!is_in("quota.*exceeded", "exceeded: quota"));
        assert!(!is_in("quota.*exceeded", "quota\nexceeded"));
        assert!(!is_in("quota.*exceeded", &format!("quota {} exceeded", "-".repeat(MAX_GAP))));
        assert!(is_in("(?<!request)limitexceeded", "requestlimitexceeded, vcpulimitexceeded"));
        assert!(!is_in("(?<!request)limitexceeded", "requestlimitexceeded"));
    }

    /// An entry of `test/error-codes/*.yaml`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        /// Expected code; absent if no one has to act and a retry is right.
        code: Option<ErrorCode>,
        /// machine-controller-manager's code, if any.
        driver: Option<String>,
        text: String,
    }

    fn labelled(table: &str) -> Vec<Example> {
        let documents = yaml::documents(table).unwrap();
        serde_json::from_value(documents.into_iter().next().unwrap()).unwrap()
    }

    #[test]
    fn messages_get_the_code_that_a_person_gives_them() {
        let tables: [(&dyn Provider, Vec<Example>); 5] = [
            (&crate::provider::alicloud::AliCloud, labelled(include_str!("../../../test/error-codes/alicloud.yaml"))),
            (
                &crate::provider::openstack::OpenStack,
                labelled(include_str!("../../../test/error-codes/openstack.yaml")),
            ),
            (&crate::provider::gcp::Gcp, labelled(include_str!("../../../test/error-codes/gcp.yaml"))),
            (&crate::provider::azure::Azure, labelled(include_str!("../../../test/error-codes/azure.yaml"))),
            (&crate::provider::aws::Aws, labelled(include_str!("../../../test/error-codes/aws.yaml"))),
        ];
        let mut wrong = Vec::new();
        for (provider, messages) in &tables {
            for Example { code, driver, text } in messages {
                let found = provider.error_codes(driver.as_deref(), text);
                if found != code.iter().copied().collect() {
                    wrong.push(format!("{} {found:?} instead of {code:?}:\n{text}\n", provider.provider_type()));
                }
            }
        }
        assert!(wrong.is_empty(), "{} messages:\n{}", wrong.len(), wrong.join("\n"));
        assert!(tables.iter().map(|(_, messages)| messages.len()).sum::<usize>() >= 60);
    }
}
