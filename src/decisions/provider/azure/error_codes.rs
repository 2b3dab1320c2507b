//! Gardener's error codes for errors of Azure's machine-controller-manager driver.

use crate::provider::{ErrorNames, ErrorTexts, KnownErrors};
use wire::api::gardener::ErrorCode;

pub(super) static KNOWN: KnownErrors = KnownErrors::new(CODES, TEXTS);

/// Error codes of Azure Resource Manager and of the directory, in lower case.
const CODES: ErrorNames = &[
    // Ambiguous codes, for which the message decides.
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
    // Temporary errors of Azure, or conflicts with other operations on the same resource.
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

/// Phrases specific to Azure.
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
