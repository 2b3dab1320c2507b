//! A fake Azure for the dependencies of pools: the scale sets of non-zonal pools.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use azure_core::error::ErrorKind;
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, HttpClient, Request, StatusCode};
use clap::{ArgMatches, Error};
use gardener_extension_worker::cloud::azure::{Addresses, Azure as Client};
use gardener_extension_worker::cloud::dependency::Cloud;
use gardener_extension_worker::cloud::{CloudFactory, TaskEnded, WriteCheck};
use serde_json::{Value, json};
use test_support::arm::{Arm, Group, Operations};

use crate::dependency::{Dependency, WAY, Way};
use crate::documents::Documents;
use crate::gardenlet::Gardenlet;
use crate::random::Random;

/// Replaces Azure's URLs.
const ADDRESS: &str = "http://azure";
/// Durations of Azure's operations.
const PACES: [Operations; 3] = [
    Operations::AtOnce,
    Operations::Polled { times: 1, retry_after: 1 },
    Operations::Polled { times: 3, retry_after: 3 },
];

/// Connects to Azure through the simulated network.
struct ByNetwork;

impl CloudFactory for ByNetwork {
    fn worker_type(&self) -> &'static str {
        "azure"
    }

    fn open(&self, _: &ArgMatches, write_check: WriteCheck, task_ended: TaskEnded) -> Result<Arc<dyn Cloud>, Error> {
        let origin = ADDRESS.parse().ok();
        let addresses = Addresses { resource_manager: origin.clone(), authority: origin };
        Ok(Arc::new(Client::by(Arc::new(WAY.get()), addresses, write_check, task_ended)))
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Way(..)")
    }
}

#[async_trait]
impl HttpClient for Way {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let broken = |error: anyhow::Error| azure_core::Error::with_error(ErrorKind::Io, error, "no answer");
        let response = self.clone().carry(requested(request).map_err(broken)?).await.map_err(broken)?;
        let status = StatusCode::from(response.status().as_u16());
        let mut headers = Headers::new();
        for (name, value) in response.headers() {
            headers.insert(name.as_str().to_owned(), value.to_str().unwrap_or_default().to_owned());
        }
        let body = response.bytes().await.map_err(|error| broken(error.into()))?;
        Ok(AsyncRawResponse::from_bytes(status, headers, body))
    }
}

fn requested(request: &Request) -> anyhow::Result<reqwest::Request> {
    let method = request.method().as_ref().parse()?;
    let mut requested = reqwest::Request::new(method, request.url().clone());
    for (name, value) in request.headers().iter() {
        let name: reqwest::header::HeaderName = name.as_str().parse()?;
        requested.headers_mut().insert(name, value.as_str().parse()?);
    }
    let body = azure_core::Bytes::from(request.body());
    *requested.body_mut() = Some(body.into());
    Ok(requested)
}

/// The shoot's resource group.
pub(crate) struct Azure {
    router: Router,
    group: Group,
}

impl Azure {
    pub(crate) fn new(random: &Random) -> Self {
        let (router, group) = Arm::in_process("sub", "shoot");
        group.operations(*random.one_of(&PACES).unwrap_or(&Operations::AtOnce));
        Self { router, group }
    }
}

impl Dependency for Azure {
    fn provider(&self) -> &'static str {
        "azure"
    }

    fn clouds(&self) -> &'static [&'static dyn CloudFactory] {
        &[&ByNetwork]
    }

    fn router(&self) -> Router {
        self.router.clone()
    }

    fn prepare(&self, documents: &mut Documents, _: &Random) {
        let spec = &mut documents.worker["spec"];
        spec["infrastructureProviderStatus"]["zoned"] = json!(false);
        spec["infrastructureProviderStatus"]["resourceGroup"]["name"] = json!("shoot");
        for pool in spec["pools"].as_array_mut().into_iter().flatten() {
            pool["zones"] = json!([]);
            [pool["minimum"], pool["maximum"]] = [1, 2].map(Value::from);
        }
        let region = spec["region"].clone();
        let config = &mut documents.cluster["spec"]["cloudProfile"]["spec"]["providerConfig"];
        config["countFaultDomains"] = json!([{"region": region, "count": 2}]);
        for secret in &mut documents.secrets {
            if secret["metadata"]["name"] == "cloudprovider" {
                secret["stringData"]["subscriptionID"] = json!("sub");
            }
        }
    }

    /// Changes the region's number of fault domains.
    fn change(&self, gardenlet: &Gardenlet, random: &Random) {
        let count = 1 + random.below(3);
        gardenlet.change_cluster(|cluster| {
            let config = &mut cluster["spec"]["cloudProfile"]["spec"]["providerConfig"];
            config["countFaultDomains"][0]["count"] = json!(count);
        });
        gardenlet.request("other fault domains", |_| {});
    }

    fn is_needed(&self, _: &Value) -> bool {
        true
    }

    fn takes_a_while(&self) -> bool {
        true
    }

    fn complete(&self) {
        self.group.complete_operations();
    }

    fn names(&self) -> Vec<String> {
        self.group.names()
    }
}
