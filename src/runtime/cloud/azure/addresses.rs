//! Addresses of Azure's resource managers and authorities, and their replacements.

use azure_core::cloud::CloudConfiguration;
use azure_core::http::Url;

use decisions::provider::azure::cloud::AzureCloud;

/// Addresses of one cloud.
#[derive(Clone, Copy, Debug)]
struct Official {
    resource_manager: &'static str,
    audience: &'static str,
    authority: &'static str,
}

fn official(cloud: AzureCloud) -> Official {
    match cloud {
        AzureCloud::Public => Official {
            resource_manager: "https://management.azure.com",
            audience: "https://management.core.windows.net/",
            authority: "https://login.microsoftonline.com",
        },
        AzureCloud::China => Official {
            resource_manager: "https://management.chinacloudapi.cn",
            audience: "https://management.core.chinacloudapi.cn/",
            authority: "https://login.chinacloudapi.cn",
        },
        AzureCloud::Government => Official {
            resource_manager: "https://management.usgovcloudapi.net",
            audience: "https://management.core.usgovcloudapi.net/",
            authority: "https://login.microsoftonline.us",
        },
    }
}

/// Address of the resource manager of a cloud, without a trailing slash.
pub(super) fn resource_manager(cloud: AzureCloud) -> &'static str {
    official(cloud).resource_manager
}

/// Scope of access tokens for the resource manager. The audience ends with a slash, so the scope has two.
pub(super) fn scope(cloud: AzureCloud) -> String {
    format!("{}/.default", official(cloud).audience)
}

/// SDK configuration of the cloud, which determines the authority for tokens. (The Go extension uses the public one
/// for every cloud.)
pub(super) fn configuration(cloud: AzureCloud) -> CloudConfiguration {
    match cloud {
        AzureCloud::Public => CloudConfiguration::AzurePublic,
        AzureCloud::China => CloudConfiguration::AzureChina,
        AzureCloud::Government => CloudConfiguration::AzureGovernment,
    }
}

/// Replacements for Azure's own addresses in every cloud: a proxy, or a stand-in for tests.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Replaces the resource manager.
    pub resource_manager: Option<Origin>,
    /// Replaces the authority that issues tokens.
    pub authority: Option<Origin>,
}

impl Addresses {
    /// The replacement for an official address; `None` if the address is used as it is.
    pub(super) fn instead_of(&self, url: &Url) -> Option<Url> {
        let clouds = [AzureCloud::Public, AzureCloud::China, AzureCloud::Government];
        let is_for = |address: fn(AzureCloud) -> &'static str| {
            clouds.iter().any(|cloud| Origin::of(url).is_some_and(|origin| origin.0 == address(*cloud)))
        };
        let origin = if is_for(|cloud| official(cloud).resource_manager) {
            self.resource_manager.as_ref()
        } else if is_for(|cloud| official(cloud).authority) {
            self.authority.as_ref()
        } else {
            None
        };
        origin.and_then(|origin| origin.with_path_of(url))
    }

    /// Converts an address that the resource manager of a cloud has returned to its official form. Other addresses
    /// are rejected, because each request carries a token.
    pub(super) fn official(&self, cloud: AzureCloud, given: &str) -> Option<Url> {
        let url = Url::parse(given).ok()?;
        let origin = Origin::of(&url)?;
        let official = Origin(resource_manager(cloud).to_owned());
        (origin == official || self.resource_manager.as_ref() == Some(&origin)).then(|| official.with_path_of(&url))?
    }
}

/// Scheme, host and port of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "https" | "http") {
            return None;
        }
        let host = url.host_str()?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(Self(format!("{}://{host}{port}", url.scheme())))
    }

    fn with_path_of(&self, url: &Url) -> Option<Url> {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        Url::parse(&format!("{}{}{query}", self.0, url.path())).ok()
    }
}

impl std::str::FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        let is_bare =
            url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let origin = if is_bare { Self::of(&url) } else { None };
        origin.ok_or_else(|| "expected scheme, host and port only, such as https://arm.example.com".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn sends_requests_to_the_configured_address() {
        let addresses = Addresses {
            resource_manager: Some("http://127.0.0.1:8080".parse().unwrap()),
            authority: Some("https://login.example.com/".parse().unwrap()),
        };
        let instead = |text: &str| addresses.instead_of(&url(text)).map(|url| url.to_string());
        for cloud in [AzureCloud::Public, AzureCloud::China, AzureCloud::Government] {
            let request = format!("{}/subscriptions/a%2Fb?x=%24y", resource_manager(cloud));
            assert_eq!(instead(&request).unwrap(), "http://127.0.0.1:8080/subscriptions/a%2Fb?x=%24y");
        }
        assert_eq!(
            instead("https://login.microsoftonline.us/t/oauth2/v2.0/token").unwrap(),
            "https://login.example.com/t/oauth2/v2.0/token"
        );
        assert_eq!(instead("https://elsewhere.example.com/"), None);
        assert_eq!(Addresses::default().instead_of(&url("https://management.azure.com/")), None);
    }

    #[test]
    fn a_token_is_only_sent_to_the_resource_manager() {
        let addresses =
            Addresses { resource_manager: Some("http://127.0.0.1:8080".parse().unwrap()), ..Addresses::default() };
        let official = |given: &str| addresses.official(AzureCloud::China, given).map(|url| url.to_string());
        let there = "https://management.chinacloudapi.cn/operations/1?a=b";
        assert_eq!(official(there).as_deref(), Some(there));
        assert_eq!(official("http://127.0.0.1:8080/operations/1?a=b").as_deref(), Some(there));
        for foreign in [
            "https://management.azure.com/operations/1",
            "http://management.chinacloudapi.cn/",
            "https://management.chinacloudapi.cn.example.com/",
            "https://management.chinacloudapi.cn:8443/",
            "file:///etc/passwd",
            "/operations/1",
            "",
        ] {
            assert_eq!(official(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn only_origins_are_addresses() {
        for wrong in
            ["arm.example.com", "https://arm.example.com/azure", "ftp://arm", "https://me@arm", "https://arm?x"]
        {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }
}
