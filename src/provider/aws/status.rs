//! The `WorkerStatus` document that is written to `status.providerStatus` (spec/aws-worker.md section 3.5).

use serde_json::{Value, json};

use super::documents::{API_VERSION, StatusImage, WorkerStatus};
use crate::api::gardener::{CapabilityDefinition, WorkerPool};
use crate::capabilities::{DEFAULT_ARCHITECTURE, are_equal, only_architecture, with_defaults};
use crate::provider::PoolPlan;
use crate::provider::document::Document;
use crate::provider::status_images::status_images;

/// The images of all pools in the form that the CloudProfile calls for: with an architecture where it declares no
/// capabilities, else with capabilities.
pub(super) fn provider_status(
    previous: Option<&WorkerStatus>,
    declared: &[CapabilityDefinition],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
) -> Value {
    let planned: Vec<StatusImage> =
        planned.iter().filter_map(|plan| serde_json::from_value(plan.status_image.clone()).ok()).collect();
    let last = planned.len().saturating_sub(1);
    let planned = planned.into_iter().enumerate().map(|(index, image)| in_form(image, declared, index == last));
    let kept_before = previous.iter().flat_map(|status| status.machine_images.iter().cloned());
    let images = status_images(
        planned.map(to_value),
        kept_before.map(|kept| to_value(in_form(kept, declared, false))),
        failed,
        |listed, image| is_same(listed, image, declared),
    );
    let mut document = json!({ "apiVersion": API_VERSION, "kind": WorkerStatus::KIND });
    if !images.is_empty() {
        document["machineImages"] = images.into();
    }
    document
}

/// Where capabilities are declared, an image without any gets its architecture as one. Of planned images the last one
/// stays without, as the Go extension leaves it.
fn in_form(mut image: StatusImage, declared: &[CapabilityDefinition], is_last_planned: bool) -> StatusImage {
    let architecture = image.architecture.take().unwrap_or_else(|| DEFAULT_ARCHITECTURE.to_owned());
    if declared.is_empty() {
        return StatusImage { architecture: Some(architecture), capabilities: None, ..image };
    }
    if image.capabilities.is_none() && !is_last_planned {
        image.capabilities = Some(only_architecture(&architecture));
    }
    image
}

fn is_same(listed: &Value, image: &Value, declared: &[CapabilityDefinition]) -> bool {
    let equal = |member: &str| listed[member] == image[member];
    let capabilities = |image: &Value| {
        with_defaults(&serde_json::from_value(image["capabilities"].clone()).unwrap_or_default(), declared)
    };
    equal("name") && equal("version") && equal("architecture") && are_equal(&capabilities(listed), &capabilities(image))
}

fn to_value(image: StatusImage) -> Value {
    serde_json::to_value(image).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::architecture_definition;

    fn plan(image: Value) -> PoolPlan {
        PoolPlan { pool: "a".to_owned(), machines: vec![], status_image: image, in_place_hash: None }
    }

    fn images(declared: &[CapabilityDefinition], planned: &[Value]) -> Value {
        let plans: Vec<PoolPlan> = planned.iter().cloned().map(plan).collect();
        provider_status(None, declared, &plans.iter().collect::<Vec<_>>(), &[])["machineImages"].clone()
    }

    #[test]
    fn images_take_the_form_of_the_cloud_profile() {
        let arm = json!({"name": "l", "version": "1", "ami": "ami-arm", "architecture": "arm64"});
        let amd = json!({"name": "l", "version": "1", "ami": "ami-amd", "architecture": "amd64"});
        assert_eq!(images(&[], &[arm.clone(), amd.clone(), arm.clone()]), json!([arm, amd]));
        let declared = vec![architecture_definition()];
        assert_eq!(
            images(&declared, &[arm, amd]),
            json!([
                {"name": "l", "version": "1", "ami": "ami-arm", "capabilities": {"architecture": ["arm64"]}},
                {"name": "l", "version": "1", "ami": "ami-amd"},
            ])
        );
    }

    #[test]
    fn the_same_capabilities_are_listed_once() {
        let image = |capabilities: Value| json!({"name": "l", "version": "1", "ami": "ami", "architecture": "amd64", "capabilities": capabilities});
        let declared = vec![architecture_definition()];
        let both = image(json!({"architecture": ["arm64", "amd64"]}));
        let listed = images(&declared, &[both, image(json!({}))]);
        assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    }
}
