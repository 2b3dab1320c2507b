//! Images that change in a CloudProfile, go and come back while pools have them: no machine is replaced for it, what a pool has stays
//! usable, and what nobody knows is said and costs nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::{Controllers, Life};
use crate::api_server::kinds::{MACHINE_CLASS, SECRET};
use crate::documents::Documents;
use crate::wanted::{Wanted, machine_images, wanted};

/// The addresses of images at clouds.
const ADDRESSES: [&str; 6] = ["ami", "id", "image", "urn", "communityGalleryImageID", "sharedGalleryImageID"];
/// In the calm an operation that can't go on says so within this time.
const REFUSED: Duration = Duration::from_secs(60);

/// What a CloudProfile has of the images that pools may have.
#[derive(Default)]
pub(super) struct Images {
    /// Which versions are not in it.
    gone: [bool; 2],
    /// What is added to the addresses of the others.
    addition: Option<u64>,
    /// Whether gardenlet has asked for something since.
    is_asked: bool,
}

impl Images {
    fn of_profile(&self, provider: &str) -> Value {
        let mut all = machine_images(&Documents::of(provider).cluster).clone();
        let is_gone = |version: &Value| {
            let versions = Documents::images(provider).into_iter().zip(self.gone);
            versions.into_iter().any(|(gone, is_gone)| is_gone && version["version"] == gone)
        };
        for versions in all.as_array_mut().into_iter().flatten().filter_map(|image| image["versions"].as_array_mut()) {
            versions.retain(|version| !is_gone(version));
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
    /// The CloudProfile changes. As a rule gardenlet asks for something then.
    pub(super) async fn change_images(&mut self, is_settled: bool) {
        // Of two that both believe that they lead, one may go on with what the other has begun, and with what it has read before.
        if is_settled && self.images.is_asked && self.kind != Controllers::Two {
            self.check_images();
        }
        self.steps.push("images");
        let version = usize::from(self.random.happens(500));
        match self.random.below(4) {
            0 | 1 => self.images.gone[version] = true,
            2 => self.images.gone = [false; 2],
            _ => self.images.addition = Some(self.random.below(1_000)),
        }
        self.mirror_images();
        sleep(self.random.millis(0, 5_000)).await;
        if self.random.happens(700) {
            self.gardenlet.request("other images", |_| {});
            self.images.is_asked = true;
            sleep(self.random.millis(0, 5_000)).await;
        }
    }

    pub(super) fn bring_images_back(&mut self) {
        self.images.gone = [false; 2];
        self.mirror_images();
    }

    fn mirror_images(&mut self) {
        let images = self.images.of_profile(self.provider);
        self.images.is_asked = false;
        self.network
            .trace
            .note("gardenlet", format!("the CloudProfile has other images, without {:?}", self.images.gone));
        self.gardenlet.change_cluster(|cluster| {
            cluster["spec"]["cloudProfile"]["spec"]["providerConfig"]["machineImages"] = images;
        });
    }

    /// Each class has the image that the CloudProfile had when it was asked for, or the one that is recorded.
    fn check_images(&mut self) {
        let Some(wanted) = self.wanted_now() else { return };
        let live = self.actor("gardenlet");
        for wanted in wanted.deployments.values() {
            // A person may have edited it since.
            let class =
                live.get(&MACHINE_CLASS, &wanted.class).filter(|class| class.value["providerSpec"]["edited"].is_null());
            if class.is_some_and(|class| class.value["providerSpec"] != wanted.provider_spec) {
                let found =
                    format!("MachineClass {} has an old image although the operation has succeeded", wanted.class);
                self.found.push(found);
            }
        }
    }

    fn wanted_now(&self) -> Option<Arc<Wanted>> {
        let [worker, cluster] = self.gardenlet.worker_and_cluster()?;
        let secrets = self.actor("gardenlet").list(&SECRET);
        Some(wanted(&worker.value, &cluster.value, secrets.iter().map(|secret| &secret.value)))
    }

    /// Versions that pools have go from the CloudProfile: nothing happens, where they are recorded. Then a pool is to get one that is
    /// not there, which is said; once it is there, the pool gets it.
    pub(super) async fn lose_images(&mut self) {
        self.steps.push("images gone");
        self.images.gone = [true; 2];
        self.mirror_images();
        // At Alibaba Cloud images are recorded by somebody else.
        if self.wanted_now().is_some_and(|wanted| wanted.unplanned.is_empty()) {
            self.no_op().await;
        }
        self.roll();
        let is_missing = self.wanted_now().is_some_and(|wanted| !wanted.unplanned.is_empty());
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
