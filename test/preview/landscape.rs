//! Writes a landscape as files for measurements of `preview`:
//! `PREVIEW_LANDSCAPE=folder:10000 cargo test --test preview -- --ignored landscape`.

use std::path::Path;

use serde_json::{Value, json};

use crate::world::{World, worlds};

/// Bundles of many shoots, each in the form of one of the worlds. Without the variable nothing is written.
#[test]
#[ignore = "writes files where PREVIEW_LANDSCAPE says"]
fn landscape() {
    let variable = std::env::var("PREVIEW_LANDSCAPE").unwrap_or_default();
    let Some((folder, count)) = variable.rsplit_once(':') else { return };
    let (folder, count): (&Path, usize) = (Path::new(folder), count.parse().unwrap());
    let worlds = worlds();
    std::fs::create_dir_all(folder).unwrap();
    for index in 0..count {
        let world = renamed(&worlds[index % worlds.len()].1, index);
        let bundle = json!({"worker": world.worker, "cluster": world.cluster(), "secrets": world.secret_objects()});
        let name = format!("shoot-{index:05}");
        if std::env::var_os("PREVIEW_LANDSCAPE_YAML").is_some() {
            std::fs::write(folder.join(name + ".yaml"), serde_saphyr::to_string(&bundle).unwrap()).unwrap();
        } else {
            std::fs::write(folder.join(name + ".json"), bundle.to_string()).unwrap();
        }
    }
    let profile = &worlds[0].1.cloud_profile;
    std::fs::write(folder.with_extension("profile.json"), replaced_images(profile).to_string()).unwrap();
}

fn renamed(world: &World, index: usize) -> World {
    let text = serde_json::to_string(&json!([world.worker, world.shoot, world.secrets])).unwrap();
    let text = text.replace(world.namespace(), &format!("shoot--p--{index:05}"));
    let Ok(Value::Array(parts)) = serde_json::from_str(&text) else { unreachable!() };
    let [worker, shoot, secrets] = parts.try_into().unwrap();
    World { worker, shoot, secrets, cloud_profile: world.cloud_profile.clone() }
}

/// The profile with another image under one version, another order of capabilities, and a new version.
fn replaced_images(profile: &Value) -> Value {
    let mut profile = profile.clone();
    let versions = profile.pointer_mut("/spec/providerConfig/machineImages/0/versions").unwrap();
    versions[0]["capabilityFlavors"][0]["communityGalleryImageID"] = json!("/replaced");
    let mut another = versions[0].clone();
    another["version"] = json!("1877.9.0");
    versions.as_array_mut().unwrap().push(another);
    profile["spec"]["machineCapabilities"].as_array_mut().unwrap().reverse();
    profile
}
