//! Gardener's error codes from what the Azure driver of machine-controller-manager says
//! (spec/azure-worker.md section 15.1).

use std::collections::BTreeSet;

use crate::api::gardener::ErrorCode;
use crate::provider::error_texts::{self, ErrorTexts};

/// Texts of Azure, in any case, and the code that each stands for.
const TEXTS: ErrorTexts = &[
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
    error_texts::error_codes(TEXTS, code, text)
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
