//! Gardener's error codes from what the Azure driver of machine-controller-manager says
//! (spec/azure-worker.md section 15.1). The driver's own code goes before patterns in its text.

use std::collections::BTreeSet;

use crate::api::gardener::ErrorCode;

/// Codes of the driver that leave no doubt.
const DRIVER_CODES: &[(&str, ErrorCode)] = &[
    ("ResourceExhausted", ErrorCode::InfraResourcesDepleted),
    ("Unauthenticated", ErrorCode::InfraUnauthenticated),
    ("PermissionDenied", ErrorCode::InfraUnauthorized),
    ("InvalidArgument", ErrorCode::ConfigurationProblem),
];

/// Texts of Azure, in any case, and the code that each stands for.
const PATTERNS: &[(ErrorCode, &[&str])] = &[
    (
        ErrorCode::InfraUnauthenticated,
        &[
            "invalidauthenticationtokentenant",
            "authentication failed",
            "invalid_client",
            "cannot fetch token",
            "invalidsubscriptionid",
        ],
    ),
    (
        ErrorCode::InfraUnauthorized,
        &["authorizationfailed", "invalid_grant", "no active subscriptions", "not authorized", "unauthorized"],
    ),
    (ErrorCode::InfraQuotaExceeded, &["quotaexceeded", "exceeded quota", "quota has been met", "exceeding approved"]),
    (
        ErrorCode::InfraRateLimitsExceeded,
        &["requestlimitexceeded", "throttling", "too many requests", "toomanyrequests"],
    ),
    (
        ErrorCode::InfraDependencies,
        &["readonlydisabledsubscription", "is already being used", "internalservererror", "internalbillingerror"],
    ),
    (ErrorCode::RetryableInfraDependencies, &["retryableerror"]),
    (
        ErrorCode::InfraResourcesDepleted,
        &["not available in the current hardware cluster", "skunotavailable", "zonalallocationfailed", "out of stock"],
    ),
    (
        ErrorCode::ConfigurationProblem,
        &["not supported in your requested availability zone", "invalidparameter", "cannot boot hypervisor generation"],
    ),
    (
        ErrorCode::RetryableConfigurationProblem,
        &["overconstrainedzonalallocationrequest", "the requested configuration is currently not supported"],
    ),
];

/// The codes for a failed machine.
#[must_use]
pub fn error_codes(code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
    let known = DRIVER_CODES.iter().find(|(driver, _)| code == Some(*driver)).map(|(_, code)| *code);
    let text = text.to_lowercase();
    let quota = PATTERNS.iter().any(|(code, patterns)| {
        *code == ErrorCode::InfraQuotaExceeded && patterns.iter().any(|pattern| text.contains(pattern))
    });
    if quota {
        // Azure reports a used-up quota as an operation that is not allowed, with a driver code for missing capacity.
        return [ErrorCode::InfraQuotaExceeded].into();
    }
    if let Some(known) = known {
        return [known].into();
    }
    let matches = PATTERNS.iter().filter(|(_, patterns)| patterns.iter().any(|pattern| text.contains(pattern)));
    matches.map(|(code, _)| *code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_code_goes_before_words() {
        let only = |code: ErrorCode| BTreeSet::from([code]);
        for (code, text, expected) in [
            (Some("ResourceExhausted"), "409 Conflict, AllocationFailed", only(ErrorCode::InfraResourcesDepleted)),
            (
                Some("ResourceExhausted"),
                "OperationNotAllowed: Operation could not be completed as it results in exceeding approved Total Regional Cores quota",
                only(ErrorCode::InfraQuotaExceeded),
            ),
            (Some("Internal"), "SkuNotAvailable in westeurope", only(ErrorCode::InfraResourcesDepleted)),
            (None, "AuthorizationFailed: the client has no permission", only(ErrorCode::InfraUnauthorized)),
            (None, "409 Conflict", BTreeSet::new()),
        ] {
            assert_eq!(error_codes(code, text), expected, "{text}");
        }
    }
}
