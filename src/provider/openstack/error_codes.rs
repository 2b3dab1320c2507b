//! Gardener's error codes from what OpenStack says, through its driver of machine-controller-manager or to this extension.

use serde_json::Value;

use crate::api::bounded_text;
use crate::api::gardener::ErrorCode;
use crate::provider::{DependencyFailure, ErrorNames, ErrorTexts, KnownErrors, error_codes};

/// Types of Neutron's and of Nova's faults, in lower case.
/// What is known of the errors of OpenStack.
pub(super) const KNOWN: KnownErrors = KnownErrors { codes: CODES, texts: TEXTS };

const CODES: ErrorNames = &[
    // These can mean anything, so their words decide.
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

/// Words that only OpenStack uses.
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

/// The longest text of OpenStack that comes into a message.
const LONGEST_TEXT: usize = 300;

/// Why a call has failed that was answered with this status: in the words of the fault, without addresses.
#[must_use]
pub fn answer_failure(doing: &str, status: u16, body: &str) -> DependencyFailure {
    let fault: Option<Value> = serde_json::from_str(body).ok();
    let members = fault.as_ref().and_then(Value::as_object);
    let message = members.and_then(|members| members.values().find_map(|fault| fault.get("message")?.as_str()));
    let said = bounded_text::shortened(message.unwrap_or(body).trim(), LONGEST_TEXT);
    let code = error_codes(&KNOWN, None, &format!("but got {status} instead: {body}")).into_iter().next();
    DependencyFailure { message: format!("{doing}: OpenStack answers with status {status}: {said}"), code }
}
