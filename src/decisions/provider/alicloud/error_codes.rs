//! Gardener's error codes for errors of AliCloud's machine-controller-manager driver.

use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};
use wire::api::gardener::ErrorCode;

pub(super) static KNOWN: KnownErrors = KnownErrors::new(CODES, TEXTS);

/// AliCloud's error codes, in lower case.
const CODES: ErrorNames = &[
    // Ambiguous codes, for which the message decides.
    (None, "forbidden invalidparameter"),
    // The machine itself is missing, not an object that the configuration refers to.
    (None, "invalidinstanceid.notfound"),
    (
        Some(ErrorCode::InfraUnauthenticated),
        "invalidaccesskeyid invalidaccesskeyid.inactive invalidaccesskeyid.notfound invalidsecretaccesskey \
         signaturedoesnotmatch",
    ),
    (Some(ErrorCode::InfraUnauthorized), "accessdenied forbidden.ram nopermission"),
    (
        Some(ErrorCode::InfraQuotaExceeded),
        "instancelimitexceeded quotaexceed.elasticquota quotaexceeded.vpc vcpulimitexceeded",
    ),
    (Some(ErrorCode::InfraRateLimitsExceeded), "requestlimitexceeded throttling throttling.api throttling.user"),
    (Some(ErrorCode::InfraResourcesDepleted), "operationdenied.nostock zone.notonsale"),
    // Temporary errors of AliCloud, or conflicts with other operations on the same resource.
    (Some(ErrorCode::RetryableInfraDependencies), "internalerror operationconflict serviceunavailable"),
    (Some(ErrorCode::InfraDependencies), "dependencyviolation dependencyviolation.securitygroup"),
    (Some(ErrorCode::RetryableConfigurationProblem), "sdk.cannotresolveendpoint"),
    (Some(ErrorCode::ConfigurationProblem), "invalidinstancetype.notsupportdiskcategory"),
];

/// Phrases specific to AliCloud.
const TEXTS: ErrorTexts = &[
    (ErrorCode::InfraUnauthorized, &["user not authorized"]),
    (ErrorCode::InfraQuotaExceeded, &["exceeded the quota"]),
    (ErrorCode::InfraResourcesDepleted, &["zone is not available for purchase"]),
];
