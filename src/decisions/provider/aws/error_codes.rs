//! Gardener's error codes for errors of AWS's machine-controller-manager driver.

use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};
use wire::api::gardener::ErrorCode;

pub(super) static KNOWN: KnownErrors = KnownErrors::new(CODES, TEXTS);

/// Error codes of EC2 and IAM, in lower case.
const CODES: ErrorNames = &[
    // Ambiguous codes, for which the message decides.
    (None, "badrequest forbidden unauthorized unsupported"),
    // The machine itself is missing, not an object that the configuration refers to.
    (None, "invalidinstanceid.notfound"),
    (Some(ErrorCode::InfraUnauthenticated), "authfailure expiredtoken invalidaccesskeyid invalidsecretaccesskey"),
    (
        Some(ErrorCode::InfraUnauthorized),
        "accessdenied accessdeniedexception invalidclienttokenid signaturedoesnotmatch \
         unauthorizedoperation",
    ),
    (
        Some(ErrorCode::InfraQuotaExceeded),
        "maxspotinstancecountexceeded instancelimitexceeded networkinterfacelimitexceeded \
         resourcelimitexceeded vcpulimitexceeded volumelimitexceeded",
    ),
    (
        Some(ErrorCode::InfraRateLimitsExceeded),
        "requestlimitexceeded throttling throttlingexception toomanyrequestsexception",
    ),
    (
        Some(ErrorCode::InfraResourcesDepleted),
        "insufficientcapacity insufficienthostcapacity insufficientinstancecapacity \
         insufficientreservedinstancecapacity",
    ),
    // Temporary errors of AWS.
    (Some(ErrorCode::RetryableInfraDependencies), "internalerror internalfailure serviceunavailable unavailable"),
    (
        Some(ErrorCode::InfraDependencies),
        "deleteconflict dependencyviolation insufficientfreeaddressesinsubnet invalidsubnet.conflict \
         optinrequired pendingverification",
    ),
    (
        Some(ErrorCode::ConfigurationProblem),
        "invalidblockdevicemapping invalidamiid.malformed invalidamiid.unavailable \
         invalidparametercombination invalidparametervalue invalidsubnet missingparameter",
    ),
];

/// Phrases specific to AWS.
const TEXTS: ErrorTexts = &[
    (ErrorCode::InfraUnauthenticated, &["authfailure"]),
    (ErrorCode::InfraUnauthorized, &["invalidclienttokenid", "unauthorizedoperation"]),
    (ErrorCode::InfraResourcesDepleted, &["insufficientinstancecapacity"]),
    (ErrorCode::InfraDependencies, &["insufficientfreeaddressesinsubnet", "currently associated with another service"]),
    (ErrorCode::ConfigurationProblem, &["invalidsubnet"]),
];
