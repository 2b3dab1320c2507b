//! Gardener's error codes from what AliCloud says, through its driver of machine-controller-manager.

use crate::api::gardener::ErrorCode;
use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};

/// What is known of the errors of AliCloud.
pub(super) const KNOWN: KnownErrors = KnownErrors { codes: CODES, texts: TEXTS };

/// Codes of AliCloud, in lower case.
const CODES: ErrorNames = &[
    // These can mean anything, so their words decide.
    (None, "forbidden invalidparameter"),
    // Not what the configuration refers to, but the machine itself.
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
    // AliCloud itself, or others at work on the same resource: it goes away.
    (Some(ErrorCode::RetryableInfraDependencies), "internalerror operationconflict serviceunavailable"),
    (Some(ErrorCode::InfraDependencies), "dependencyviolation dependencyviolation.securitygroup"),
    (Some(ErrorCode::RetryableConfigurationProblem), "sdk.cannotresolveendpoint"),
    (Some(ErrorCode::ConfigurationProblem), "invalidinstancetype.notsupportdiskcategory"),
];

/// Words that only AliCloud uses.
const TEXTS: ErrorTexts = &[
    (ErrorCode::InfraUnauthorized, &["user not authorized"]),
    (ErrorCode::InfraQuotaExceeded, &["exceeded the quota"]),
    (ErrorCode::InfraResourcesDepleted, &["zone is not available for purchase"]),
];
