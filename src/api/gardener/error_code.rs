//! The error codes of Gardener that tell a user whose turn it is.

use serde::{Deserialize, Serialize};

/// Makes the codes from one table: `/// what it says`, name, text.
macro_rules! error_codes {
    ($($(#[$meaning:meta])* $code:ident = $text:literal,)*) => {
        /// A code in `lastError.codes` (`core.gardener.cloud/v1beta1` `ErrorCode`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$meaning])* #[serde(rename = $text)] $code,)*
        }

        impl ErrorCode {
            /// The code as Gardener writes it.
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
    /// Something in the shoot keeps resources from being deleted.
    CleanupClusterResources = "ERR_CLEANUP_CLUSTER_RESOURCES",
    /// The user has to change the Shoot or the CloudProfile.
    ConfigurationProblem = "ERR_CONFIGURATION_PROBLEM",
    /// Other resources at the cloud are in the way.
    InfraDependencies = "ERR_INFRA_DEPENDENCIES",
    /// A quota is used up.
    InfraQuotaExceeded = "ERR_INFRA_QUOTA_EXCEEDED",
    /// The cloud asks for fewer requests.
    InfraRateLimitsExceeded = "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    /// The cloud has no capacity.
    InfraResourcesDepleted = "ERR_INFRA_RESOURCES_DEPLETED",
    /// The credentials are wrong.
    InfraUnauthenticated = "ERR_INFRA_UNAUTHENTICATED",
    /// The credentials lack a permission.
    InfraUnauthorized = "ERR_INFRA_UNAUTHORIZED",
    /// A configuration problem that may go away by itself.
    RetryableConfigurationProblem = "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
    /// A dependency problem that may go away by itself.
    RetryableInfraDependencies = "ERR_RETRYABLE_INFRA_DEPENDENCIES",
}
