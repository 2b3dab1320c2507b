//! The error codes of Gardener that tell a user whose turn it is.

use serde::{Deserialize, Serialize};

/// A code in `lastError.codes` (`core.gardener.cloud/v1beta1` `ErrorCode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ErrorCode {
    /// Something in the shoot keeps resources from being deleted.
    #[serde(rename = "ERR_CLEANUP_CLUSTER_RESOURCES")]
    CleanupClusterResources,
    /// The user has to change the Shoot or the CloudProfile.
    #[serde(rename = "ERR_CONFIGURATION_PROBLEM")]
    ConfigurationProblem,
    /// Other resources at the cloud are in the way.
    #[serde(rename = "ERR_INFRA_DEPENDENCIES")]
    InfraDependencies,
    /// A quota is used up.
    #[serde(rename = "ERR_INFRA_QUOTA_EXCEEDED")]
    InfraQuotaExceeded,
    /// The cloud asks for fewer requests.
    #[serde(rename = "ERR_INFRA_RATE_LIMITS_EXCEEDED")]
    InfraRateLimitsExceeded,
    /// The cloud has no capacity.
    #[serde(rename = "ERR_INFRA_RESOURCES_DEPLETED")]
    InfraResourcesDepleted,
    /// The credentials are wrong.
    #[serde(rename = "ERR_INFRA_UNAUTHENTICATED")]
    InfraUnauthenticated,
    /// The credentials lack a permission.
    #[serde(rename = "ERR_INFRA_UNAUTHORIZED")]
    InfraUnauthorized,
    /// A configuration problem that may go away by itself.
    #[serde(rename = "ERR_RETRYABLE_CONFIGURATION_PROBLEM")]
    RetryableConfigurationProblem,
    /// A dependency problem that may go away by itself.
    #[serde(rename = "ERR_RETRYABLE_INFRA_DEPENDENCIES")]
    RetryableInfraDependencies,
}

impl ErrorCode {
    /// The code as Gardener writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CleanupClusterResources => "ERR_CLEANUP_CLUSTER_RESOURCES",
            Self::ConfigurationProblem => "ERR_CONFIGURATION_PROBLEM",
            Self::InfraDependencies => "ERR_INFRA_DEPENDENCIES",
            Self::InfraQuotaExceeded => "ERR_INFRA_QUOTA_EXCEEDED",
            Self::InfraRateLimitsExceeded => "ERR_INFRA_RATE_LIMITS_EXCEEDED",
            Self::InfraResourcesDepleted => "ERR_INFRA_RESOURCES_DEPLETED",
            Self::InfraUnauthenticated => "ERR_INFRA_UNAUTHENTICATED",
            Self::InfraUnauthorized => "ERR_INFRA_UNAUTHORIZED",
            Self::RetryableConfigurationProblem => "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
            Self::RetryableInfraDependencies => "ERR_RETRYABLE_INFRA_DEPENDENCIES",
        }
    }
}
