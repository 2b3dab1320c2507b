//! Images that change in a CloudProfile, disappear and return while pools use them. No machine is replaced for this, a
//! pool's current image stays usable, and an unknown image is reported without other effects.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::{Controllers, Life};
use crate::api_server::kinds::{MACHINE_CLASS, SECRET};
use crate::documents::Documents;
use crate::expected::{Expected, expected, machine_images};

/// Members with an image's reference at a cloud.
const ADDRESSES: [&str; 6] = ["ami", "id", "image", "urn", "communityGalleryImageID", "sharedGalleryImageID"];
/// Time limit in the calm for reporting that an operation cannot continue.
const REFUSED: Duration = Duration::from_secs(60);

/// State of the images in the CloudProfile.
#[derive(Default)]
pub(super) struct Images {
    /// Which versions are missing.
    deleted: [bool; 2],
    /// Suffix added to the references of the others.
    addition: Option<u64>,
    /// Whether gardenlet has requested a reconcile since.
    is_requested: bool,
}

impl Images {
    fn of_profile(&self, provider: &str) -> Value {
        let mut all = machine_images(&Documents::of(provider).cluster).clone();
        let is_deleted = |version: &Value| {
            let versions = Documents::images(provider).into_iter().zip(self.deleted);
            versions.into_iter().any(|(deleted, is_deleted)| is_deleted && version["version"] == deleted)
        };
        for versions in all.as_array_mut().into_iter().flatten().filter_map(|image| image["versions"].as_array_mut()) {
            versions.retain(|version| !is_deleted(version));
        }
        if let Some(addition) = self.addition {
            add_to_addresses(&mut all, &addition.to_string());
        }
        all
    }
}

fn add_to_addresses(value: &mut Value, addition: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| add_to_addresses(item, addition)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(address) if ADDRESSES.contains(&name.as_str()) => address.push_str(addition),
                    _ => add_to_addresses(member, addition),
                }
            }
        }
        _ => {}
    }
}

impl Life {
    /// Changes the CloudProfile. Usually gardenlet then requests a reconcile.
    pub(super) async fn change_images(&mut self, is_settled: bool) {
        // Of two controllers that both act as leaders, one may continue the other's operation with older data.
        if is_settled && self.images.is_requested && self.kind != Controllers::Two {
            self.check_images();
        }
        self.steps.push("images");
        let version = usize::from(self.random.happens(500));
        match self.random.below(4) {
            0 | 1 => self.images.deleted[version] = true,
            2 => self.images.deleted = [false; 2],
            _ => self.images.addition = Some(self.random.below(1_000)),
        }
        self.mirror_images();
        sleep(self.random.millis(0, 5_000)).await;
        if self.random.happens(700) {
            self.gardenlet.request("other images", |_| {});
            self.images.is_requested = true;
            sleep(self.random.millis(0, 5_000)).await;
        }
    }

    pub(super) fn bring_images_back(&mut self) {
        self.images.deleted = [false; 2];
        self.mirror_images();
    }

    fn mirror_images(&mut self) {
        let images = self.images.of_profile(self.provider);
        self.images.is_requested = false;
        self.network
            .trace
            .note("gardenlet", format!("the CloudProfile has other images, without {:?}", self.images.deleted));
        self.gardenlet.change_cluster(|cluster| {
            cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"] = images;
        });
    }

    /// Checks that each class has the image from the CloudProfile at the request, or the recorded one.
    fn check_images(&mut self) {
        let Some(expected) = self.target_now() else { return };
        let live = self.actor("gardenlet");
        for expected in expected.deployments.values() {
            // A user may have edited it since.
            let class = live
                .get(&MACHINE_CLASS, &expected.class)
                .filter(|class| class.value["providerSpec"]["edited"].is_null());
            if class.is_some_and(|class| class.value["providerSpec"] != expected.provider_spec) {
                let found =
                    format!("MachineClass {} has an old image although the operation has succeeded", expected.class);
                self.found.push(found);
            }
        }
    }

    fn target_now(&self) -> Option<Arc<Expected>> {
        let [worker, cluster] = self.gardenlet.worker_and_cluster()?;
        let secrets = self.actor("gardenlet").list(&SECRET);
        Some(expected(&worker.value, &cluster.value, secrets.iter().map(|secret| &secret.value)))
    }

    /// Removes the versions in use from the CloudProfile, which has no effect while they are recorded. Then assigns a
    /// missing version to a pool, which must be reported, and adds it, after which the pool must get it.
    pub(super) async fn lose_images(&mut self) {
        self.steps.push("images gone");
        self.images.deleted = [true; 2];
        self.mirror_images();
        // At Alibaba Cloud, another controller records the images.
        if self.target_now().is_some_and(|expected| expected.unplanned.is_empty()) {
            self.no_op().await;
        }
        self.roll();
        let is_missing = self.target_now().is_some_and(|expected| !expected.unplanned.is_empty());
        let version = Documents::images(self.provider)[self.image];
        if is_missing && !self.gardenlet.wait_for_error(version, REFUSED).await {
            self.found.push(format!("that {version} is missing is not said after {} s", REFUSED.as_secs()));
        }
        self.bring_images_back();
        self.gardenlet.request("the image that is there again", |_| {});
        if self.is_done().await {
            self.check_images();
            self.check_leftovers();
        }
    }
}
