//! Gardener's error codes, which indicate who has to act.

use serde::{Deserialize, Serialize};

/// Declares the codes from one table: `/// meaning`, name, text.
macro_rules! error_codes {
    ($($(#[$meaning:meta])* $code:ident = $text:literal,)*) => {
        /// A code in `lastError.codes` (`core.gardener.cloud/v1beta1` `ErrorCode`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$meaning])* #[serde(rename = $text)] $code,)*
        }

        impl ErrorCode {
            /// The code in Gardener's spelling.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $text,)*
                }
            }
        }
    };
}

error_codes! {
    /// Resources in the shoot can't be deleted.
    CleanupClusterResources = "ERR_CLEANUP_CLUSTER_RESOURCES",
    /// The user has to change the Shoot or the CloudProfile.
    ConfigurationProblem = "ERR_CONFIGURATION_PROBLEM",
    /// Other cloud resources prevent the operation.
    InfraDependencies = "ERR_INFRA_DEPENDENCIES",
    /// A quota is exceeded.
    InfraQuotaExceeded = "ERR_INFRA_QUOTA_EXCEEDED",
    /// The cloud throttles requests.
    InfraRateLimitsExceeded = "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    /// The cloud has no capacity.
    InfraResourcesDepleted = "ERR_INFRA_RESOURCES_DEPLETED",
    /// The credentials are invalid.
    InfraUnauthenticated = "ERR_INFRA_UNAUTHENTICATED",
    /// The credentials lack a permission.
    InfraUnauthorized = "ERR_INFRA_UNAUTHORIZED",
    /// A configuration problem that may resolve itself.
    RetryableConfigurationProblem = "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
    /// A dependency problem that may resolve itself.
    RetryableInfraDependencies = "ERR_RETRYABLE_INFRA_DEPENDENCIES",
}
