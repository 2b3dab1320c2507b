//! The provider spec of a machine class, as machine-controller-manager's AliCloud driver decodes it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::disks::Disks;
use super::zonal::AliCloudWorker;
use crate::provider::PoolProblem;
use crate::provider::machine_class::without_nulls;
use crate::provider::zonal::PoolInputs;

impl AliCloudWorker<'_> {
    pub(super) fn provider_spec(&self, inputs: &PoolInputs<'_, Self>, zone: &str) -> Result<Value, PoolProblem> {
        let (pool, Disks { system, data }) = (inputs.pool, &inputs.shared);
        let missing = || format!("infrastructure status has no vSwitch with purpose \"nodes\" for zone {zone:?}");
        let vswitch = self.vswitch(zone).ok_or_else(|| PoolProblem::field("zones", missing()))?;
        Ok(without_nulls(json!({
            "imageID": inputs.image.reference.value,
            "instanceType": pool.machine_type,
            "region": self.context.worker.spec.region,
            "zoneID": zone,
            "securityGroupID": self.security_group,
            "vSwitchID": vswitch.id,
            "systemDisk": system,
            "dataDisks": Some(data).filter(|data| !data.is_empty()),
            "instanceChargeType": "PostPaid",
            "internetChargeType": "PayByTraffic",
            "internetMaxBandwidthIn": 5,
            "spotStrategy": "NoSpot",
            "tags": tags(&self.context.shoot.status.technical_id, &pool.labels),
        })))
    }
}

/// The tags by which machine-controller-manager finds machines, overridden by the non-empty labels of the pool.
fn tags(technical_id: &str, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::from([
        (format!("kubernetes.io/cluster/{technical_id}"), "1".to_owned()),
        (format!("kubernetes.io/role/worker/{technical_id}"), "1".to_owned()),
    ]);
    let given = labels.iter().filter(|(_, value)| !value.is_empty());
    tags.extend(given.map(|(key, value)| (key.clone(), value.clone())));
    tags
}
