//! Pure: the image that a machine class was created with, in case the CloudProfile changes the image of a version.
//!
//! Class names don't depend on images, so after such a change new nodes get another image than existing nodes of the
//! same class. With `--image-drift`, the first image of a class is recorded in an annotation on its MachineDeployment,
//! and the condition `ImageDrift` reports differences from the CloudProfile. With `--pin-images`, the class keeps its
//! image until it is replaced.
//!
//! `{"class":"shoot--a--b-web-z1-1a2b3","image":{"/ami":"ami-1"}}`

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::provider::{MachinePlan, Provider};
use crate::worker::machines::machine_objects::{LiveDeployment, MachineObjects};
use crate::worker::plan::Plan;
use crate::worker::status::conditions::{Condition, ConditionType};
use crate::worker::status::status_text::MAX_FAILURE_BYTES;
use wire::api::bounded_text::{beginning, listed};

/// Annotation on MachineDeployments with the image of their class.
pub const ANNOTATION: &str = "gardener-extension-worker/class-image";
/// Maximum length of an image in messages, in characters.
const MOST_OF_IMAGE: usize = 300;

/// Handling of classes whose image has changed in the CloudProfile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImagePolicy {
    /// The class gets the new image without a report, as in the Go extension.
    #[default]
    Follow,
    /// The class gets the new image, and the condition reports it (`--image-drift`).
    Report,
    /// The class keeps its image until it is replaced, and the condition reports it (`--pin-images`).
    Pin,
}

/// Image fields in the provider spec of a class: value by JSON pointer; `null` if absent.
type Image = BTreeMap<String, Value>;

/// Value of the annotation.
#[derive(Debug, Serialize, Deserialize)]
struct ClassImage {
    class: String,
    image: Image,
}

/// The images of the classes of a plan.
#[derive(Clone, Debug, Default)]
pub struct ClassImages {
    /// Annotations to write, by name of the deployment: its class is new or was never recorded.
    to_record: BTreeMap<String, String>,
    /// Messages by pool about classes with another image; `None` if images are not compared.
    drifts: Option<BTreeMap<String, String>>,
}

impl ClassImages {
    /// Compares the images of a plan with the recorded ones, and puts pinned images into the plan.
    pub fn of(provider: &dyn Provider, plan: &mut Plan, policy: ImagePolicy, live: &MachineObjects) -> Self {
        let mut images = Self::default();
        if policy == ImagePolicy::Follow {
            return images;
        }
        let mut drifts = BTreeMap::new();
        // A zone that waits, is stopped or is on hold has a class that is not the planned one.
        let names = plan.machines().map(|machine| &machine.deployment.name.0);
        let kept: BTreeSet<String> = names.filter(|name| plan.keeps_live_class(name)).cloned().collect();
        for machine in plan.machines_mut().filter(|machine| !kept.contains(&machine.deployment.name.0)) {
            let target = image_of(provider, &machine.class.provider_spec);
            let name = &machine.deployment.name.0;
            let class = &machine.deployment.class_name.0;
            let recorded = live.deployments.get(name).and_then(LiveDeployment::class_image);
            match recorded.filter(|recorded| recorded.class == *class) {
                None => images.record(name, class, target),
                Some(recorded) if recorded.image == target => {}
                Some(recorded) => {
                    drifts.insert(
                        machine.deployment.pool_name.clone(),
                        text_of(machine, policy, &recorded.image, &target),
                    );
                    if policy == ImagePolicy::Pin {
                        put(&mut machine.class.provider_spec, &recorded.image);
                    }
                }
            }
        }
        images.drifts = Some(drifts);
        images
    }

    fn record(&mut self, deployment: &str, class: &str, image: Image) {
        // Serialization can't fail, because all keys are strings.
        if let Ok(text) = serde_json::to_string(&ClassImage { class: class.to_owned(), image }) {
            self.to_record.insert(deployment.to_owned(), text);
        }
    }

    /// The annotation to write to a deployment.
    #[must_use]
    pub fn to_record(&self, deployment: &str) -> Option<&str> {
        self.to_record.get(deployment).map(String::as_str)
    }

    /// Pools with a class whose image differs from the CloudProfile, each with a message.
    pub fn drifts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.drifts.iter().flatten().map(|(pool, text)| (pool.as_str(), text.as_str()))
    }

    /// The condition `ImageDrift`. If images are not compared, it overwrites a recorded condition that would otherwise
    /// stay indefinitely. `present` are the recorded conditions.
    #[must_use]
    pub fn condition(&self, present: &[Value]) -> Option<Condition> {
        let of_type = ConditionType::ImageDrift;
        let Some(drifts) = &self.drifts else {
            let why = "The controller runs without --image-drift and --pin-images.";
            return Condition::unknown(of_type, "NotCompared", why).in_place_of_recorded(present);
        };
        let drifts: Vec<String> = drifts.iter().map(|(pool, text)| format!("pool {pool:?}: {text}")).collect();
        Some(match drifts.is_empty() {
            true => Condition::unmet(of_type, "ImagesUnchanged", "Every class has the image that it was made with."),
            false => Condition::met(of_type, "ImageChanged", listed(&drifts, MAX_FAILURE_BYTES)),
        })
    }
}

impl LiveDeployment {
    fn class_image(&self) -> Option<ClassImage> {
        let text = self.object.metadata.annotations.as_ref()?.get(ANNOTATION)?;
        serde_json::from_str(text).ok()
    }
}

fn image_of(provider: &dyn Provider, provider_spec: &Value) -> Image {
    let pointers = provider.image_pointers(provider_spec).into_iter();
    pointers.map(|pointer| (pointer.clone(), provider_spec.pointer(&pointer).cloned().unwrap_or_default())).collect()
}

/// Puts an image into a provider spec.
fn put(provider_spec: &mut Value, image: &Image) {
    for (pointer, value) in image {
        let Some((parent, member)) = pointer.rsplit_once('/') else { continue };
        let Some(parent) = provider_spec.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
        match value {
            Value::Null => drop(parent.remove(member)),
            value => drop(parent.insert(member.to_owned(), value.clone())),
        }
    }
}

fn text_of(machine: &MachinePlan, policy: ImagePolicy, recorded: &Image, target: &Image) -> String {
    let [made_with, profile] = [recorded, target].map(|image| {
        let values = image.values().filter(|value| !value.is_null());
        let values = values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        beginning(&values.collect::<Vec<_>>().join(" "), MOST_OF_IMAGE)
    });
    let what = match policy {
        ImagePolicy::Pin => "keeps it until it is replaced",
        ImagePolicy::Follow | ImagePolicy::Report => "gives that to new nodes",
    };
    let class = &machine.deployment.class_name.0;
    format!("class {class} was made with {made_with}, the CloudProfile has {profile}; the class {what}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::PoolPlan;
    use crate::provider::azure::Azure;
    use crate::provider::test_support::machine_plan;
    use crate::worker::status::conditions::ConditionStatus;

    fn plan_with(image: &str) -> Plan {
        let mut machine = machine_plan();
        for pointer in Azure.image_pointers(&Value::Null) {
            machine.class.provider_spec = pointer
                .split('/')
                .skip(1)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .fold(json!(image), |value, member| json!({ member: value }));
        }
        let machines = vec![machine];
        let pool = PoolPlan { pool: "a".to_owned(), machines, status_image: json!({}), in_place_hash: None };
        Plan { pools: vec![Ok(pool)], provider_status: json!({}), ..Plan::default() }
    }

    #[test]
    fn records_first_image_and_reports_drift() {
        let name = machine_plan().deployment.name.0;
        let compare = |image: &str, record: Option<&str>, policy| {
            let annotations = record.map_or(json!({}), |record| json!({ ANNOTATION: record }));
            let document = json!({"metadata": {"name": name, "annotations": annotations}});
            let deployments = [(name.clone(), LiveDeployment::read_without_codes(document).unwrap())].into();
            let live = MachineObjects { deployments, ..MachineObjects::default() };
            let mut plan = plan_with(image);
            let images = ClassImages::of(&Azure, &mut plan, policy, &live);
            let spec = plan.machines().next().unwrap().class.provider_spec.to_string();
            (images, spec)
        };
        let (images, _) = compare("image-1", None, ImagePolicy::Report);
        let record = images.to_record(&name).unwrap().to_owned();
        assert_eq!(images.drifts().count(), 0);

        let (images, _) = compare("image-1", Some(&record), ImagePolicy::Report);
        assert!(images.to_record(&name).is_none() && images.drifts().count() == 0, "it is recorded and the same");

        for (policy, gets, what) in [
            (ImagePolicy::Report, "image-2", "gives that to new nodes"),
            (ImagePolicy::Pin, "image-1", "keeps it until it is replaced"),
        ] {
            let (images, spec) = compare("image-2", Some(&record), policy);
            let (pool, text) = images.drifts().next().unwrap();
            assert!(pool == "a" && text.contains("was made with image-1, the CloudProfile has image-2"), "{text}");
            assert!(text.ends_with(what) && spec.contains(gets), "{text}, {spec}");
            assert!(images.to_record(&name).is_none(), "what the class was made with stays recorded");
        }
        let (images, spec) = compare("image-2", Some(&record), ImagePolicy::Follow);
        assert!(images.drifts().count() == 0 && spec.contains("image-2"));
    }

    #[test]
    fn image_drift_names_pools() {
        let name = machine_plan().deployment.name.0;
        let condition = |recorded: &str, policy, present: &[Value]| {
            let pointers = Azure.image_pointers(&Value::Null).into_iter();
            let image: Image = pointers.map(|pointer| (pointer, json!(recorded))).collect();
            let class = machine_plan().deployment.class_name.0;
            let record = json!(ClassImage { class, image }).to_string();
            let document = json!({"metadata": {"name": name, "annotations": {ANNOTATION: record}}});
            let deployments = [(name.clone(), LiveDeployment::read_without_codes(document).unwrap())].into();
            let live = MachineObjects { deployments, ..MachineObjects::default() };
            ClassImages::of(&Azure, &mut plan_with("image-1"), policy, &live).condition(present)
        };
        let same = condition("image-1", ImagePolicy::Report, &[]).unwrap();
        assert_eq!((same.status, same.reason), (ConditionStatus::False, "ImagesUnchanged"));
        let changed = condition("image-0", ImagePolicy::Pin, &[]).unwrap();
        assert_eq!((changed.status, changed.reason), (ConditionStatus::True, "ImageChanged"));
        assert!(changed.message.starts_with("pool \"a\": class "), "{}", changed.message);
        assert_eq!(condition("image-0", ImagePolicy::Follow, &[]), None, "nobody looks, and nothing is recorded");
        let recorded = |status: &str| [json!({"type": "ImageDrift", "status": status})];
        let unknown = condition("image-0", ImagePolicy::Follow, &recorded("True")).unwrap();
        assert_eq!((unknown.status, unknown.reason), (ConditionStatus::Unknown, "NotCompared"));
        assert_eq!(condition("image-0", ImagePolicy::Follow, &recorded("Unknown")), None);
    }
}
