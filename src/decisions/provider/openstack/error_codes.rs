//! Gardener's error codes for errors from OpenStack, either through its machine-controller-manager driver or in
//! responses to this extension.

use serde_json::Value;

use crate::provider::{DependencyFailure, ErrorNames, ErrorTexts, KnownErrors, error_codes};
use wire::api::bounded_text;
use wire::api::gardener::ErrorCode;

pub(super) static KNOWN: KnownErrors = KnownErrors::new(CODES, TEXTS);

/// Fault types of Neutron and Nova, in lower case.
const CODES: ErrorNames = &[
    // Ambiguous codes, for which the message decides.
    (None, "badrequest forbidden computefault conflictingrequest servererror"),
    (Some(ErrorCode::InfraUnauthenticated), "unauthorized"),
    (Some(ErrorCode::InfraUnauthorized), "policynotauthorized"),
    (
        Some(ErrorCode::InfraQuotaExceeded),
        "overlimit overquota volumelimitexceeded volumesizeexceedsavailablequota portlimitexceeded",
    ),
    (Some(ErrorCode::InfraResourcesDepleted), "novalidhost"),
    (Some(ErrorCode::InfraDependencies), "networkinuse subnetinuse portinuse routerinuse ipaddressgenerationfailure"),
    (Some(ErrorCode::ConfigurationProblem), "itemnotfound notfound"),
];

/// Phrases specific to OpenStack.
const TEXTS: ErrorTexts = &[
    (
        ErrorCode::InfraUnauthenticated,
        &[
            "authentication failed",
            "could not find application credential",
            "requires authentication",
            "invalid character",
            "invalid_client",
        ],
    ),
    (ErrorCode::InfraQuotaExceeded, &["maximum number of ports exceeded", "too many server groups"]),
    (
        ErrorCode::InfraResourcesDepleted,
        &["there are not enough hosts available", "no valid host was found", "insufficient compute resources"],
    ),
    (ErrorCode::InfraDependencies, &["no router found", "there are one or more ports still in use"]),
    (
        ErrorCode::ConfigurationProblem,
        &["missing expected router", "overlaps with cidr", "policy doesn't allow.*to be performed"],
    ),
];

/// Maximum length of OpenStack's text in a message.
const LONGEST_TEXT: usize = 300;

/// The failure for a response with this status, with the message of the fault instead of the whole response.
#[must_use]
pub fn response_failure(doing: &str, status: u16, body: &str) -> DependencyFailure {
    let fault: Option<Value> = serde_json::from_str(body).ok();
    let members = fault.as_ref().and_then(Value::as_object);
    let message = members.and_then(|members| members.values().find_map(|fault| fault.get("message")?.as_str()));
    let text = bounded_text::shortened(message.unwrap_or(body).trim(), LONGEST_TEXT);
    let code = error_codes(&KNOWN, None, &format!("but got {status} instead: {body}")).into_iter().next();
    DependencyFailure { message: format!("{doing}: OpenStack answers with status {status}: {text}"), code }
}
