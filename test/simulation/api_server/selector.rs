//! Label and field selectors, limited to equality and existence of labels.

use serde_json::Value;

/// Which objects a list or watch selects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    namespace: Option<String>,
    labels: Vec<(String, Option<String>)>,
    fields: Vec<(String, String)>,
}

impl Selector {
    pub(crate) fn new(namespace: Option<&str>, labels: &str, fields: &str) -> Self {
        let parts = |text: &str| -> Vec<String> {
            text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let label = |part: String| match part.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.trim_start_matches('=').to_owned())),
            None => (part, None),
        };
        let field = |part: String| {
            let (path, value) = part.split_once('=').unwrap_or((&part, ""));
            (path.to_owned(), value.trim_start_matches('=').to_owned())
        };
        Self {
            namespace: namespace.map(str::to_owned),
            labels: parts(labels).into_iter().map(label).collect(),
            fields: parts(fields).into_iter().map(field).collect(),
        }
    }

    /// Whether it selects by namespace only.
    pub(crate) fn is_plain(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let in_namespace = |namespace: &String| metadata["namespace"] == namespace.as_str();
        let has_label = |(key, value): &(String, Option<String>)| match (&metadata["labels"][key.as_str()], value) {
            (Value::Null, _) => false,
            (_, None) => true,
            (label, Some(value)) => label == value.as_str(),
        };
        let has_field = |(path, value): &(String, String)| {
            object.pointer(&format!("/{}", path.replace('.', "/"))).is_some_and(|field| field == value.as_str())
        };
        self.namespace.as_ref().is_none_or(in_namespace)
            && self.labels.iter().all(has_label)
            && self.fields.iter().all(has_field)
    }
}
