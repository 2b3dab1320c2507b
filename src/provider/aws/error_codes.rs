//! Gardener's error codes from what AWS says, through its driver of machine-controller-manager.

use std::collections::BTreeSet;

use crate::api::gardener::ErrorCode;
use crate::provider::error_texts::{self, ErrorTexts, KnownErrors};

/// Codes of EC2 and IAM, in lower case.
const CODES: &[(&str, Option<ErrorCode>)] = &[
    // These can mean anything, so their words decide.
    ("badrequest", None),
    ("forbidden", None),
    ("unauthorized", None),
    ("unsupported", None),
    // Not what the configuration refers to, but the machine itself.
    ("invalidinstanceid.notfound", None),
    ("authfailure", Some(ErrorCode::InfraUnauthenticated)),
    ("expiredtoken", Some(ErrorCode::InfraUnauthenticated)),
    ("invalidaccesskeyid", Some(ErrorCode::InfraUnauthenticated)),
    ("invalidsecretaccesskey", Some(ErrorCode::InfraUnauthenticated)),
    ("accessdenied", Some(ErrorCode::InfraUnauthorized)),
    ("accessdeniedexception", Some(ErrorCode::InfraUnauthorized)),
    ("invalidclienttokenid", Some(ErrorCode::InfraUnauthorized)),
    ("signaturedoesnotmatch", Some(ErrorCode::InfraUnauthorized)),
    ("unauthorizedoperation", Some(ErrorCode::InfraUnauthorized)),
    ("maxspotinstancecountexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("instancelimitexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("networkinterfacelimitexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("resourcelimitexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("vcpulimitexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("volumelimitexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("requestlimitexceeded", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("throttling", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("throttlingexception", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("toomanyrequestsexception", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("insufficientcapacity", Some(ErrorCode::InfraResourcesDepleted)),
    ("insufficienthostcapacity", Some(ErrorCode::InfraResourcesDepleted)),
    ("insufficientinstancecapacity", Some(ErrorCode::InfraResourcesDepleted)),
    ("insufficientreservedinstancecapacity", Some(ErrorCode::InfraResourcesDepleted)),
    // AWS itself: it goes away.
    ("internalerror", Some(ErrorCode::RetryableInfraDependencies)),
    ("internalfailure", Some(ErrorCode::RetryableInfraDependencies)),
    ("serviceunavailable", Some(ErrorCode::RetryableInfraDependencies)),
    ("unavailable", Some(ErrorCode::RetryableInfraDependencies)),
    ("deleteconflict", Some(ErrorCode::InfraDependencies)),
    ("dependencyviolation", Some(ErrorCode::InfraDependencies)),
    ("insufficientfreeaddressesinsubnet", Some(ErrorCode::InfraDependencies)),
    ("invalidsubnet.conflict", Some(ErrorCode::InfraDependencies)),
    ("optinrequired", Some(ErrorCode::InfraDependencies)),
    ("pendingverification", Some(ErrorCode::InfraDependencies)),
    ("invalidblockdevicemapping", Some(ErrorCode::ConfigurationProblem)),
    ("invalidamiid.malformed", Some(ErrorCode::ConfigurationProblem)),
    ("invalidamiid.unavailable", Some(ErrorCode::ConfigurationProblem)),
    ("invalidparametercombination", Some(ErrorCode::ConfigurationProblem)),
    ("invalidparametervalue", Some(ErrorCode::ConfigurationProblem)),
    ("invalidsubnet", Some(ErrorCode::ConfigurationProblem)),
    ("missingparameter", Some(ErrorCode::ConfigurationProblem)),
];

/// Words that only AWS uses.
const TEXTS: ErrorTexts = &[
    (ErrorCode::InfraUnauthenticated, &["authfailure"]),
    (ErrorCode::InfraUnauthorized, &["invalidclienttokenid", "unauthorizedoperation"]),
    (ErrorCode::InfraResourcesDepleted, &["insufficientinstancecapacity"]),
    (ErrorCode::InfraDependencies, &["insufficientfreeaddressesinsubnet", "currently associated with another service"]),
    (ErrorCode::ConfigurationProblem, &["invalidsubnet"]),
];

/// The code for a failed machine, or none.
#[must_use]
pub fn error_codes(code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
    error_texts::error_codes(&KnownErrors { codes: CODES, texts: TEXTS }, code, text)
}
