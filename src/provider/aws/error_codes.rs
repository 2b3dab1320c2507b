//! Gardener's error codes from what the AWS driver of machine-controller-manager says (spec/aws-worker.md section 8).

use std::collections::BTreeSet;

use crate::api::gardener::ErrorCode;
use crate::provider::error_texts::{self, ErrorTexts};

/// Texts of AWS, in any case, and the code that each stands for.
const TEXTS: ErrorTexts = &[
    (ErrorCode::InfraUnauthenticated, &["authfailure", "invalidaccesskeyid", "invalidsecretaccesskey"]),
    (
        ErrorCode::InfraUnauthorized,
        &["unauthorized", "invalidclienttokenid", "signaturedoesnotmatch", "unauthorizedoperation", "accessdenied"],
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
        ],
    ),
    (ErrorCode::InfraRateLimitsExceeded, &["requestlimitexceeded", "throttling", "too many requests"]),
    (
        ErrorCode::InfraDependencies,
        &[
            "pendingverification",
            "access not configured",
            "accessnotconfigured",
            "dependencyviolation",
            "optinrequired",
            "deleteconflict",
            "conflict",
            "inactive billing state",
            "timeout while waiting for state to become",
            "invalidcidrblock",
            "already busy for",
            "insufficientfreeaddressesinsubnet",
            "internal server error",
            "a resource with the id",
            "currently associated with another service",
        ],
    ),
    (ErrorCode::RetryableInfraDependencies, &["retryableerror"]),
    (
        ErrorCode::InfraResourcesDepleted,
        &["not available in the current hardware cluster", "insufficientinstancecapacity", "out of stock"],
    ),
    (
        ErrorCode::ConfigurationProblem,
        &[
            "not supported in your requested availability zone",
            "invalidparametervalue",
            "notfound",
            "invalidsubnet",
            "invalid value",
            "violates constraint",
            "no attached internet gateway found",
            "invalid vpc attributes",
            "unrecognized feature gate",
            "runtime-config invalid key",
            "strict decoder error",
            "not allowed to configure an unsupported",
            "error during apply of object .* is invalid:",
            "duplicate zones",
            "overlapping zones",
        ],
    ),
    (
        ErrorCode::RetryableConfigurationProblem,
        &[
            "is misconfigured and requires zero voluntary evictions",
            "sdk.cannotresolveendpoint",
            "the requested configuration is currently not supported",
        ],
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
    fn a_request_limit_is_no_quota() {
        for (code, text, expected) in [
            (None, "RequestLimitExceeded: Request limit exceeded.", ErrorCode::InfraRateLimitsExceeded),
            (
                Some("ResourceExhausted"),
                "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 5 allows",
                ErrorCode::InfraQuotaExceeded,
            ),
            (
                Some("ResourceExhausted"),
                "InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity",
                ErrorCode::InfraResourcesDepleted,
            ),
            (None, "UnauthorizedOperation: You are not authorized", ErrorCode::InfraUnauthorized),
            (None, "InvalidAMIID.NotFound: The image id '[ami-0]' does not exist", ErrorCode::ConfigurationProblem),
        ] {
            assert_eq!(error_codes(code, text), [expected].into(), "{text}");
        }
    }
}
