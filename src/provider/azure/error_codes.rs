//! Gardener's error codes from what Azure says, through its driver of machine-controller-manager.

use crate::api::gardener::ErrorCode;
use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};

/// What is known of the errors of Azure.
pub(super) const KNOWN: KnownErrors = KnownErrors { codes: CODES, texts: TEXTS };

/// Codes of Azure's Resource Manager and of its directory, in lower case.
const CODES: ErrorNames = &[
    // These can mean anything, so their words decide.
    (
        None,
        "badrequest conflict deploymentfailed forbidden notfound operationnotallowed \
         resourcedeploymentfailure unauthorized",
    ),
    (
        Some(ErrorCode::InfraUnauthenticated),
        "aadsts700016 aadsts7000215 aadsts7000222 aadsts90002 authenticationfailed \
         expiredauthenticationtoken invalid_client invalidauthenticationtoken \
         invalidauthenticationtokentenant invalidsubscriptionid subscriptionnotfound unauthorized_client",
    ),
    (Some(ErrorCode::InfraUnauthorized), "authorizationfailed invalid_grant linkedauthorizationfailed"),
    (Some(ErrorCode::InfraQuotaExceeded), "publicipcountlimitreached quotaexceeded resourcequotaexceeded"),
    (
        Some(ErrorCode::InfraRateLimitsExceeded),
        "resourcerequeststhrottled subscriptionrequeststhrottled toomanyrequests",
    ),
    (Some(ErrorCode::InfraResourcesDepleted), "allocationfailed skunotavailable zonalallocationfailed"),
    // Others at work on the same resource, or Azure itself: it goes away.
    (
        Some(ErrorCode::RetryableInfraDependencies),
        "anotheroperationinprogress conflictingconcurrentwritenotallowed internalexecutionerror \
         internaloperationerror internalservererror nicreservedforanothervm operationpreempted \
         retryableerror servicenotavailable serviceunavailable",
    ),
    (
        Some(ErrorCode::InfraDependencies),
        "cannotdeleteloadbalancerwithprivatelinkservice internalbillingerror \
         inuseroutetablecannotbedeleted inusesubnetcannotbedeleted netcfgsubnetrangesoverlap \
         readonlydisabledsubscription scopelocked subnetisfull vnetaddressspacecannotchangeduetopeerings \
         vnetinuse",
    ),
    (
        Some(ErrorCode::RetryableConfigurationProblem),
        "overconstrainedallocationrequest overconstrainedzonalallocationrequest",
    ),
    (
        Some(ErrorCode::ConfigurationProblem),
        "invalidparameter invalidresourcereference marketplacepurchaseeligibilityfailed \
         missingsubscriptionregistration netcfginvalidsubnet propertychangenotallowed \
         requestdisallowedbypolicy resourcepurchasevalidationfailed",
    ),
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
