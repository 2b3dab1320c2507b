//! Shared fixtures of Azure unit tests.

use super::cloud::AzureCloud;
use super::credentials::{ClientAuthentication, Credentials};
use super::scale_sets::ScaleSetScope;
use wire::api::secret::Sensitive;

pub(crate) fn location() -> ScaleSetScope {
    ScaleSetScope {
        cloud: AzureCloud::Public,
        credentials: Credentials {
            subscription: "sub".to_owned(),
            tenant: "tenant".to_owned(),
            client: "client".to_owned(),
            proof: ClientAuthentication::ClientSecret(Sensitive::from("s3cret")),
        },
        resource_group: "rg".to_owned(),
        region: "westeurope".to_owned(),
        namespace: "shoot--p--s".to_owned(),
        zonal: false,
    }
}
