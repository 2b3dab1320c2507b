//! MachineDeployments and KubeadmControlPlanes of Cluster API, and the AWSMachineTemplates that they use.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::record::text;
use wire::api::bounded_text::in_one_line;

/// Kind of the templates.
const TEMPLATE: &str = "AWSMachineTemplate";
/// Label of objects that Cluster API creates from a ClusterClass.
const OWNED_BY_TOPOLOGY: &str = "topology.cluster.x-k8s.io/owned";

/// Paths to the reference of a template, by kind. Cluster API v1beta1 and v1beta2 differ for control planes.
const REFERENCES: [(&str, &str, &str); 3] = [
    ("MachineDeployment", "/spec/template/spec/infrastructureRef", "spec.template.spec.infrastructureRef.name"),
    ("KubeadmControlPlane", "/spec/machineTemplate/infrastructureRef", "spec.machineTemplate.infrastructureRef.name"),
    (
        "KubeadmControlPlane",
        "/spec/machineTemplate/spec/infrastructureRef",
        "spec.machineTemplate.spec.infrastructureRef.name",
    ),
];

/// The users of templates, and the fixed images of the templates.
#[derive(Debug, Default)]
pub struct TemplateUsers {
    /// `ami.id` by namespace and name. It is empty if the template has no fixed image.
    templates: BTreeMap<(String, String), String>,
    users: Vec<TemplateUser>,
}

/// An object whose machines come from a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateUser {
    kind: &'static str,
    namespace: String,
    name: String,
    template: String,
    field: &'static str,
    is_of_class: bool,
}

impl TemplateUser {
    /// Name of the template that it uses.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.template
    }

    /// The same in one line, escaped and bounded.
    #[must_use]
    pub fn template_of(&self) -> String {
        one_line(&self.template)
    }

    /// Where to write the name of another template.
    #[must_use]
    pub fn field(&self) -> &'static str {
        if self.is_of_class { "the template of its ClusterClass" } else { self.field }
    }

    fn read(object: &Value) -> Option<Self> {
        let reference = REFERENCES.iter().find_map(|(kind, path, field)| {
            let reference = object.pointer(path)?;
            (object["kind"] == *kind && reference["kind"] == TEMPLATE).then_some((*kind, *field, reference))
        });
        let (kind, field, reference) = reference?;
        Some(Self {
            kind,
            namespace: member(&object["metadata"], "namespace"),
            name: member(&object["metadata"], "name"),
            template: member(reference, "name"),
            field,
            is_of_class: object["metadata"]["labels"].get(OWNED_BY_TOPOLOGY).is_some(),
        })
    }
}

impl fmt::Display for TemplateUser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}/{}", self.kind, one_line(&self.namespace), one_line(&self.name))
    }
}

impl TemplateUsers {
    /// Reads templates and their users. Other objects have no effect.
    #[must_use]
    pub fn read(objects: &[Value]) -> Self {
        let template = |object: &&Value| object["kind"] == TEMPLATE;
        let fixed = |object: &Value| {
            let metadata = &object["metadata"];
            let id = member(&object["spec"]["template"]["spec"]["ami"], "id");
            ((member(metadata, "namespace"), member(metadata, "name")), id)
        };
        let mut users: Vec<TemplateUser> = objects.iter().filter_map(TemplateUser::read).collect();
        users.sort();
        Self { templates: objects.iter().filter(template).map(fixed).collect(), users }
    }

    /// All users, with the fixed image of their template; `None` if the template was not read.
    pub fn all(&self) -> impl Iterator<Item = (&TemplateUser, Option<&str>)> {
        self.users.iter().map(|user| {
            let template = (user.namespace.clone(), user.template.clone());
            (user, self.templates.get(&template).map(String::as_str))
        })
    }
}

/// A text of an object in one line, escaped and bounded.
#[must_use]
pub fn one_line(value: &str) -> String {
    text(&in_one_line(value))
}

fn member(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_references_of_both_api_versions() {
        let reference = json!({"kind": "AWSMachineTemplate", "name": "t"});
        let object =
            |kind: &str, spec: Value| json!({"kind": kind, "metadata": {"namespace": "n", "name": "o"}, "spec": spec});
        let users = TemplateUsers::read(&[
            object("AWSMachineTemplate", json!({})),
            object("KubeadmControlPlane", json!({"machineTemplate": {"infrastructureRef": reference}})),
            object("KubeadmControlPlane", json!({"machineTemplate": {"spec": {"infrastructureRef": reference}}})),
            object("MachineDeployment", json!({"template": {"spec": {"infrastructureRef": reference}}})),
            object(
                "MachineDeployment",
                json!({"template": {"spec": {"infrastructureRef": {"kind": "AzureMachineTemplate", "name": "t"}}}}),
            ),
        ]);
        let fields: Vec<&str> = users.all().map(|(user, _)| user.field()).collect();
        assert_eq!(
            fields,
            [
                "spec.machineTemplate.infrastructureRef.name",
                "spec.machineTemplate.spec.infrastructureRef.name",
                "spec.template.spec.infrastructureRef.name"
            ]
        );
        assert!(users.all().all(|(user, id)| user.template() == "t" && id.is_none()));
    }
}
