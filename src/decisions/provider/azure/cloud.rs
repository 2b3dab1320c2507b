//! The Azure clouds.

use super::documents::CloudConfiguration;

/// An Azure cloud. Each has its own endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AzureCloud {
    /// The global public cloud.
    Public,
    /// The cloud operated by 21Vianet.
    China,
    /// The cloud for United States government agencies.
    Government,
}

/// Supported cloud names.
pub const CLOUDS: &[&str] = &["AzurePublic", "AzureChina", "AzureGovernment"];

impl AzureCloud {
    /// Name in CloudProfiles and machine classes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "AzurePublic",
            Self::China => "AzureChina",
            Self::Government => "AzureGovernment",
        }
    }

    /// Name in image listings.
    #[must_use]
    pub fn realm(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::China => "china",
            Self::Government => "government",
        }
    }

    /// The cloud of a region by its name prefix, as used in machine classes.
    #[must_use]
    pub fn of_region(region: &str) -> Self {
        const PREFIXES: [(&str, AzureCloud); 4] = [
            ("usgov", AzureCloud::Government),
            ("usdod", AzureCloud::Government),
            ("ussec", AzureCloud::Government),
            ("china", AzureCloud::China),
        ];
        let region = region.to_ascii_lowercase();
        PREFIXES.iter().find(|(prefix, _)| region.starts_with(prefix)).map_or(Self::Public, |(_, cloud)| *cloud)
    }

    /// The cloud configured in a CloudProfile; `None` if its name is unknown.
    #[must_use]
    pub fn configured(configuration: &CloudConfiguration) -> Option<Self> {
        let clouds = [Self::Public, Self::China, Self::Government];
        clouds.into_iter().find(|cloud| cloud.name().eq_ignore_ascii_case(&configuration.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_determine_the_cloud() {
        assert_eq!(AzureCloud::of_region("westeurope"), AzureCloud::Public);
        assert_eq!(AzureCloud::of_region("ChinaNorth3"), AzureCloud::China);
        assert_eq!(AzureCloud::of_region("USGovVirginia"), AzureCloud::Government);
        assert_eq!(AzureCloud::of_region("northchina"), AzureCloud::Public);
    }
}
