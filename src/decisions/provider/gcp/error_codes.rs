//! Gardener's error codes for errors of GCP's machine-controller-manager driver.

use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};
use wire::api::gardener::ErrorCode;

pub(super) static KNOWN: KnownErrors = KnownErrors::new(CODES, TEXTS);

/// Reasons of the compute API and of Google's authentication, in lower case.
const CODES: ErrorNames = &[
    // Ambiguous codes, for which the message decides.
    (None, "badrequest conflict forbidden invalid notfound unauthorized"),
    (Some(ErrorCode::InfraUnauthenticated), "autherror invalid_client invalidcredentials unauthorized_client"),
    (
        Some(ErrorCode::InfraUnauthorized),
        "access_denied insufficientpermissions invalid_grant service_account_access_denied",
    ),
    (Some(ErrorCode::InfraQuotaExceeded), "quota_exceeded quotaexceeded"),
    (
        Some(ErrorCode::InfraRateLimitsExceeded),
        "rate_limit_exceeded ratelimitexceeded resource_operation_rate_exceeded userratelimitexceeded",
    ),
    (
        Some(ErrorCode::InfraResourcesDepleted),
        "resource_pool_exhausted resourcepoolexhausted stockout zone_resource_pool_exhausted \
         zone_resource_pool_exhausted_with_details",
    ),
    // Temporary errors of GCP.
    (Some(ErrorCode::RetryableInfraDependencies), "backenderror internal_error internalerror serviceunavailable"),
    (
        Some(ErrorCode::InfraDependencies),
        "accessnotconfigured ip_space_exhausted ip_space_exhausted_with_details \
         resource_in_use_by_another_resource resourceinusebyanotherresource",
    ),
    (Some(ErrorCode::ConfigurationProblem), "condition_not_met conditionnotmet invalidparameter invalidusage"),
];

/// Phrases specific to GCP.
const TEXTS: ErrorTexts = &[
    (
        ErrorCode::InfraUnauthenticated,
        &["invalid authentication credentials", "invalid_client", "unable to parse service account"],
    ),
    (ErrorCode::InfraResourcesDepleted, &["does not have enough resources available"]),
    (ErrorCode::InfraRateLimitsExceeded, &["rate limit exceeded", "quota exceeded for quota metric"]),
    (ErrorCode::InfraUnauthorized, &["required '.*permission", "does not have access to service account"]),
    (ErrorCode::InfraDependencies, &["is already being used", "has not been used in project"]),
    (ErrorCode::ConfigurationProblem, &["the resource.*was not found", "locate user-managed"]),
];
