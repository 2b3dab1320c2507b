//! Generates the CustomResourceDefinitions from the types, and compares them with `image-objects/definitions.yaml` in
//! the charts. `UPDATE_GOLDEN=1 cargo test -p gardener-extension-worker-wire definitions` writes the files.

use std::path::Path;

use k8s_openapi::Resource;
use schemars::generate::SchemaSettings;
use schemars::transform::AddNullable;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::api::image_objects::{
    ImageAdmissionPolicy, ImageAdmissionPolicySpec, ImageLookup, ImageLookupSpec, ImageLookupStatus, ImageSelection,
    ImageSelectionSpec, ImageSelectionStatus, MachineImage, MachineImageSpec,
};

const FILE: &str = "image-objects/definitions.yaml";

/// A column of `kubectl get`: title, type, path.
type Column = (&'static str, &'static str, &'static str);

const AGE: Column = ("Age", "date", ".metadata.creationTimestamp");

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema: Schema =
        settings.with_transform(AddNullable::default()).into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    let mut schema = schema.to_value();
    structural(&mut schema);
    schema
}

/// Removes what structural schemas must not have: closed objects, defaults, and `nullable`.
fn structural(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("type").is_some_and(Value::is_string) {
                members
                    .remove("additionalProperties")
                    .filter(Value::is_object)
                    .map(|values| members.insert("additionalProperties".to_owned(), values));
                members.remove("default");
                members.remove("nullable");
            }
            members.values_mut().for_each(structural);
        }
        Value::Array(items) => items.iter_mut().for_each(structural),
        _ => {}
    }
}

fn definition<K: Resource>(
    singular: &str,
    scope: &str,
    columns: &[Column],
    spec: Value,
    status: Option<Value>,
) -> Value {
    let columns: Vec<Value> =
        columns.iter().map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path})).collect();
    let mut properties = json!({"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": spec});
    let mut version = json!({"name": K::VERSION, "served": true, "storage": true, "additionalPrinterColumns": columns});
    if let Some(status) = status {
        properties["status"] = status;
        version["subresources"] = json!({"status": {}});
    }
    version["schema"] = json!({"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": properties}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", K::URL_PATH_SEGMENT, K::GROUP),
            // Without this annotation, uninstalling the chart would delete the definition and all its objects.
            "annotations": {"helm.sh/resource-policy": "keep", "resources.gardener.cloud/keep-object": "true"},
        },
        "spec": {
            "group": K::GROUP, "scope": scope, "versions": [version],
            "names": {"kind": K::KIND, "listKind": format!("{}List", K::KIND), "plural": K::URL_PATH_SEGMENT, "singular": singular},
        },
    })
}

fn definitions() -> Vec<Value> {
    vec![
        definition::<ImageAdmissionPolicy>(
            "imageadmissionpolicy",
            "Cluster",
            &[("Provider", "string", ".spec.provider"), ("Owners", "string", ".spec.allowedOwners"), AGE],
            schema::<ImageAdmissionPolicySpec>(),
            None,
        ),
        definition::<ImageLookup>(
            "imagelookup",
            "Cluster",
            &[
                ("Provider", "string", ".spec.provider"),
                ("Versions", "string", ".spec.versions"),
                ("Found", "integer", ".status.found"),
                ("Last Run", "date", ".status.lastRun"),
                ("Errors", "string", ".status.errors[0]"),
                AGE,
            ],
            schema::<ImageLookupSpec>(),
            Some(schema::<ImageLookupStatus>()),
        ),
        definition::<ImageSelection>(
            "imageselection",
            "Namespaced",
            &[
                ("Image", "string", ".spec.image"),
                ("Architecture", "string", ".spec.architecture"),
                ("Region", "string", ".spec.region"),
                ("Resolved", "string", ".status.conditions[?(@.type==\"Resolved\")].status"),
                ("Upgrade", "string", ".status.conditions[?(@.type==\"UpgradeAvailable\")].status"),
                AGE,
            ],
            schema::<ImageSelectionSpec>(),
            Some(schema::<ImageSelectionStatus>()),
        ),
        definition::<MachineImage>(
            "machineimage",
            "Cluster",
            &[
                ("Image", "string", ".spec.image"),
                ("Version", "string", ".spec.version"),
                ("Architecture", "string", ".spec.facts.architecture[0]"),
                ("Region", "string", ".spec.region"),
                ("Created", "date", ".spec.created"),
                ("Latest", "string", ".metadata.labels.images\\.gardener-extension-worker/latest"),
            ],
            schema::<MachineImageSpec>(),
            None,
        ),
    ]
}

/// Compares a file of a chart with the expected definitions.
fn holds(chart: &str, definitions: &[Value]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts").join(chart).join(FILE);
    let texts: Vec<String> =
        definitions.iter().map(|definition| serde_saphyr::to_string(definition).unwrap()).collect();
    let text = format!(
        "# Made by `UPDATE_GOLDEN=1 cargo test -p gardener-extension-worker-wire definitions` from src/wire/api/image_objects.\n{}",
        texts.join("---\n")
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{chart}/{FILE}");
}

#[test]
fn the_charts_have_the_definitions_that_the_types_make() {
    let all = definitions();
    holds("gardener-extension-worker", &all);
    // The garden only needs the kind that restricts CloudProfiles.
    holds("gardener-extension-worker-admission/application", &all[..1]);
}
