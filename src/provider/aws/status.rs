//! The `WorkerStatus` document that is written to `status.providerStatus`.

use serde_json::{Value, json};

use super::documents::{API_VERSION, StatusImage, WorkerStatus};
use crate::api::gardener::{CapabilityDefinition, WorkerPool};
use crate::api::gotext::json::{DecodeError, decode_value};
use crate::capabilities::{DEFAULT_ARCHITECTURE, mean_the_same, only_architecture};
use crate::provider::document::Document;
use crate::provider::image::{each_once, is_image_of};
use crate::provider::{PoolPlan, WorkerError};

/// The images of all pools in the form that the CloudProfile calls for: with an architecture where it declares no
/// capabilities, else with capabilities.
///
/// # Errors
/// When a planned image is no image of AWS.
pub(super) fn provider_status(
    previous: Option<&WorkerStatus>,
    declared: &[CapabilityDefinition],
    planned: &[&PoolPlan],
    failed: &[&WorkerPool],
) -> Result<Value, WorkerError> {
    let image = |plan: &&PoolPlan| -> Result<StatusImage, WorkerError> {
        let unreadable = |source: DecodeError| WorkerError::Document {
            path: format!("image of pool {:?}", plan.pool),
            source: source.into(),
        };
        decode_value(&plan.status_image).map_err(unreadable)
    };
    let planned = planned.iter().map(image).collect::<Result<Vec<_>, _>>()?;
    let last = planned.len().saturating_sub(1);
    let planned = planned.into_iter().enumerate().map(|(index, image)| in_form(image, declared, index == last));
    let is_of_failed =
        |kept: &&StatusImage| failed.iter().any(|pool| is_image_of(pool, Some(&kept.name), Some(&kept.version)));
    let kept_before = previous.iter().flat_map(|status| &status.machine_images).filter(is_of_failed);
    let kept_before = kept_before.map(|kept| in_form(kept.clone(), declared, false));
    let images = each_once(planned.chain(kept_before), |listed, image| is_same(listed, image, declared));
    let mut document = json!({ "apiVersion": API_VERSION, "kind": WorkerStatus::KIND });
    if !images.is_empty() {
        document["machineImages"] = json!(images);
    }
    Ok(document)
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

fn is_same(listed: &StatusImage, image: &StatusImage, declared: &[CapabilityDefinition]) -> bool {
    let capabilities = |image: &StatusImage| image.capabilities.clone().unwrap_or_default();
    listed.name == image.name
        && listed.version == image.version
        && listed.architecture == image.architecture
        && mean_the_same(&capabilities(listed), &capabilities(image), declared)
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
        provider_status(None, declared, &plans.iter().collect::<Vec<_>>(), &[]).unwrap()["machineImages"].clone()
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
