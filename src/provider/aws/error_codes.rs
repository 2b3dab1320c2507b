//! Gardener's error codes from what AWS says, through its driver of machine-controller-manager.

use crate::api::gardener::ErrorCode;
use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};

/// What is known of the errors of AWS.
pub(super) const KNOWN: KnownErrors = KnownErrors { codes: CODES, texts: TEXTS };

/// Codes of EC2 and IAM, in lower case.
const CODES: ErrorNames = &[
    // These can mean anything, so their words decide.
    (None, "badrequest forbidden unauthorized unsupported"),
    // Not what the configuration refers to, but the machine itself.
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
    // AWS itself: it goes away.
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

/// Words that only AWS uses.
const TEXTS: ErrorTexts = &[
    (ErrorCode::InfraUnauthenticated, &["authfailure"]),
    (ErrorCode::InfraUnauthorized, &["invalidclienttokenid", "unauthorizedoperation"]),
    (ErrorCode::InfraResourcesDepleted, &["insufficientinstancecapacity"]),
    (ErrorCode::InfraDependencies, &["insufficientfreeaddressesinsubnet", "currently associated with another service"]),
    (ErrorCode::ConfigurationProblem, &["invalidsubnet"]),
];
