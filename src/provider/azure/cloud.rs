//! Which Azure cloud a shoot lives in (spec/azure-worker.md sections 5 and 7.6).

use super::documents::CloudConfiguration;

/// The clouds that there are.
pub const CLOUDS: &[&str] = &["AzurePublic", "AzureChina", "AzureGovernment"];

/// The cloud of a region, by the prefix of its name. Machine classes carry this one.
#[must_use]
pub fn cloud_of_region(region: &str) -> &'static str {
    const PREFIXES: [(&str, &str); 4] = [
        ("usgov", "AzureGovernment"),
        ("usdod", "AzureGovernment"),
        ("ussec", "AzureGovernment"),
        ("china", "AzureChina"),
    ];
    let region = region.to_ascii_lowercase();
    PREFIXES.iter().find(|(prefix, _)| region.starts_with(prefix)).map_or("AzurePublic", |(_, cloud)| cloud)
}

/// The cloud that a CloudProfile configures, `None` when its name is unknown.
#[must_use]
pub fn configured_cloud(configuration: &CloudConfiguration) -> Option<&'static str> {
    CLOUDS.iter().copied().find(|cloud| cloud.eq_ignore_ascii_case(&configuration.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_tell_the_cloud() {
        assert_eq!(cloud_of_region("westeurope"), "AzurePublic");
        assert_eq!(cloud_of_region("ChinaNorth3"), "AzureChina");
        assert_eq!(cloud_of_region("USGovVirginia"), "AzureGovernment");
        assert_eq!(cloud_of_region("northchina"), "AzurePublic");
    }
}
