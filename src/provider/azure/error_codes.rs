//! Gardener's error codes from what Azure says, through its driver of machine-controller-manager.

use std::collections::BTreeSet;

use crate::api::gardener::ErrorCode;
use crate::provider::error_texts::{self, ErrorTexts, KnownErrors};

/// Codes of Azure's Resource Manager and of its directory, in lower case.
const CODES: &[(&str, Option<ErrorCode>)] = &[
    // These can mean anything, so their words decide.
    ("badrequest", None),
    ("conflict", None),
    ("deploymentfailed", None),
    ("forbidden", None),
    ("notfound", None),
    ("operationnotallowed", None),
    ("resourcedeploymentfailure", None),
    ("unauthorized", None),
    ("aadsts700016", Some(ErrorCode::InfraUnauthenticated)),
    ("aadsts7000215", Some(ErrorCode::InfraUnauthenticated)),
    ("aadsts7000222", Some(ErrorCode::InfraUnauthenticated)),
    ("aadsts90002", Some(ErrorCode::InfraUnauthenticated)),
    ("authenticationfailed", Some(ErrorCode::InfraUnauthenticated)),
    ("expiredauthenticationtoken", Some(ErrorCode::InfraUnauthenticated)),
    ("invalid_client", Some(ErrorCode::InfraUnauthenticated)),
    ("invalidauthenticationtoken", Some(ErrorCode::InfraUnauthenticated)),
    ("invalidauthenticationtokentenant", Some(ErrorCode::InfraUnauthenticated)),
    ("invalidsubscriptionid", Some(ErrorCode::InfraUnauthenticated)),
    ("subscriptionnotfound", Some(ErrorCode::InfraUnauthenticated)),
    ("unauthorized_client", Some(ErrorCode::InfraUnauthenticated)),
    ("authorizationfailed", Some(ErrorCode::InfraUnauthorized)),
    ("invalid_grant", Some(ErrorCode::InfraUnauthorized)),
    ("linkedauthorizationfailed", Some(ErrorCode::InfraUnauthorized)),
    ("publicipcountlimitreached", Some(ErrorCode::InfraQuotaExceeded)),
    ("quotaexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("resourcequotaexceeded", Some(ErrorCode::InfraQuotaExceeded)),
    ("resourcerequeststhrottled", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("subscriptionrequeststhrottled", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("toomanyrequests", Some(ErrorCode::InfraRateLimitsExceeded)),
    ("allocationfailed", Some(ErrorCode::InfraResourcesDepleted)),
    ("skunotavailable", Some(ErrorCode::InfraResourcesDepleted)),
    ("zonalallocationfailed", Some(ErrorCode::InfraResourcesDepleted)),
    // Others at work on the same resource, or Azure itself: it goes away.
    ("anotheroperationinprogress", Some(ErrorCode::RetryableInfraDependencies)),
    ("conflictingconcurrentwritenotallowed", Some(ErrorCode::RetryableInfraDependencies)),
    ("internalexecutionerror", Some(ErrorCode::RetryableInfraDependencies)),
    ("internaloperationerror", Some(ErrorCode::RetryableInfraDependencies)),
    ("internalservererror", Some(ErrorCode::RetryableInfraDependencies)),
    ("nicreservedforanothervm", Some(ErrorCode::RetryableInfraDependencies)),
    ("operationpreempted", Some(ErrorCode::RetryableInfraDependencies)),
    ("retryableerror", Some(ErrorCode::RetryableInfraDependencies)),
    ("servicenotavailable", Some(ErrorCode::RetryableInfraDependencies)),
    ("serviceunavailable", Some(ErrorCode::RetryableInfraDependencies)),
    ("cannotdeleteloadbalancerwithprivatelinkservice", Some(ErrorCode::InfraDependencies)),
    ("internalbillingerror", Some(ErrorCode::InfraDependencies)),
    ("inuseroutetablecannotbedeleted", Some(ErrorCode::InfraDependencies)),
    ("inusesubnetcannotbedeleted", Some(ErrorCode::InfraDependencies)),
    ("netcfgsubnetrangesoverlap", Some(ErrorCode::InfraDependencies)),
    ("readonlydisabledsubscription", Some(ErrorCode::InfraDependencies)),
    ("scopelocked", Some(ErrorCode::InfraDependencies)),
    ("subnetisfull", Some(ErrorCode::InfraDependencies)),
    ("vnetaddressspacecannotchangeduetopeerings", Some(ErrorCode::InfraDependencies)),
    ("vnetinuse", Some(ErrorCode::InfraDependencies)),
    ("overconstrainedallocationrequest", Some(ErrorCode::RetryableConfigurationProblem)),
    ("overconstrainedzonalallocationrequest", Some(ErrorCode::RetryableConfigurationProblem)),
    ("invalidparameter", Some(ErrorCode::ConfigurationProblem)),
    ("invalidresourcereference", Some(ErrorCode::ConfigurationProblem)),
    ("marketplacepurchaseeligibilityfailed", Some(ErrorCode::ConfigurationProblem)),
    ("missingsubscriptionregistration", Some(ErrorCode::ConfigurationProblem)),
    ("netcfginvalidsubnet", Some(ErrorCode::ConfigurationProblem)),
    ("propertychangenotallowed", Some(ErrorCode::ConfigurationProblem)),
    ("requestdisallowedbypolicy", Some(ErrorCode::ConfigurationProblem)),
    ("resourcepurchasevalidationfailed", Some(ErrorCode::ConfigurationProblem)),
];

/// Words that only Azure uses.
const TEXTS: ErrorTexts = &[
    (
        ErrorCode::InfraUnauthenticated,
        &[
            "aadsts",
            "authentication failed",
            "invalid_client",
            "invalidauthenticationtokentenant",
            "invalidsubscriptionid",
        ],
    ),
    (
        ErrorCode::InfraUnauthorized,
        &[
            "authorizationfailed",
            "invalid_grant",
            "authorization profile was not found",
            "no active subscriptions",
            "does not have authorization to perform action",
        ],
    ),
    (ErrorCode::InfraDependencies, &["is already being used", "netcfgsubnetrangesoverlap", "vnetinuse"]),
    (
        ErrorCode::ConfigurationProblem,
        &[
            "azurebastionsubnet",
            "cannot boot hypervisor generation",
            "netcfginvalidsubnet",
            "privateendpointnetworkpoliciescannotbeenabledonprivateendpointsubnet",
            "privatelinkservicenetworkpoliciescannotbeenabledonprivatelinkservicesubnet",
            "loadbalancingrulemustdisablesnatsincesamefrontendipconfigurationisreferencedbyoutboundrule",
        ],
    ),
];

/// The code for a failed machine, or none.
#[must_use]
pub fn error_codes(code: Option<&str>, text: &str) -> BTreeSet<ErrorCode> {
    error_texts::error_codes(&KnownErrors { codes: CODES, texts: TEXTS }, code, text)
}
