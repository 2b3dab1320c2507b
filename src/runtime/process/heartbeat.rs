//! Heartbeat of the extension for gardenlet: a Lease that is renewed while the process runs
//! (docs/contract.md#conditions-and-heartbeat). If it is older than five minutes, gardenlet reports the extension's
//! conditions as outdated.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use crate::process::failure_reason::reason;

/// Name that gardenlet expects.
const LEASE: &str = "gardener-extension-heartbeat";
/// Name of this extension as the holder.
const HOLDER: &str = "gardener-extension-worker";

/// Renews the lease every `period`, indefinitely. Failures are logged and retried.
pub async fn beat(client: Client, namespace: String, period: Duration) {
    let api: Api<Lease> = Api::namespaced(client, &namespace);
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = renew(&api, period).await {
            warn!(error = reason(&error), namespace, "the heartbeat lease {LEASE} can't be renewed");
        }
    }
}

async fn renew(api: &Api<Lease>, period: Duration) -> Result<(), kube::Error> {
    let spec = LeaseSpec {
        holder_identity: Some(HOLDER.to_owned()),
        lease_duration_seconds: Some(i32::try_from(period.as_secs()).unwrap_or(i32::MAX)),
        renew_time: Some(MicroTime(Timestamp::now())),
        ..LeaseSpec::default()
    };
    let patch = Patch::Merge(Lease { spec: Some(spec.clone()), ..Lease::default() });
    match api.patch(LEASE, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
            api.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await.map(drop)
        }
        response => response.map(drop),
    }
}
