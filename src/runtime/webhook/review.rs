//! `AdmissionReview` of `admission.k8s.io` v1 and v1beta1: requests of an API server and responses.
//!
//! Objects are slices of the request body, because a CloudProfile can have 1.5 MiB and an update contains two.

use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use wire::api::bounded_text::shortened;
use wire::api::gotext::json::null_as_default;

/// Maximum bytes of a denial.
const MAX_MESSAGE_BYTES: usize = 48 * 1024;
/// Maximum number of warnings; the rest are counted.
const MOST_WARNINGS: usize = 20;
/// Maximum bytes of a warning. The API server sends warnings as headers.
const MAX_WARNING_BYTES: usize = 1024;

/// Supported versions.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// The longest name in Kubernetes, and longer than a uid. Names appear in responses and logs.
const MAX_NAME_BYTES: usize = 253;

/// The operation under review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// A review request.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// Returned in the response.
    uid: String,
    /// Version of the review, also used for the response.
    api_version: &'static str,
    /// Kind of the object, such as `CloudProfile`.
    kind: String,
    /// API group, such as `core.gardener.cloud`.
    pub group: String,
    /// Plural name of the resource, such as `cloudprofiles`.
    pub resource: String,
    /// Subresource, such as `status`; empty for the object itself.
    pub sub_resource: String,
    pub operation: Operation,
    /// Namespace of the object; empty if it is cluster-scoped.
    pub namespace: String,
    /// Name of the object; can be empty on creation.
    pub(crate) name: String,
    /// The new object.
    pub object: Option<Bytes>,
    pub old_object: Option<Bytes>,
    /// Memory reserved for the review. It is released when the last clone of the request is dropped.
    held: Held,
}

/// A reservation that ends when the last clone is dropped.
#[derive(Clone, Default)]
struct Held(Option<Arc<dyn Send + Sync>>);

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Held({})", self.0.is_some())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default, deserialize_with = "null_as_default")]
    api_version: String,
    #[serde(default, deserialize_with = "null_as_default")]
    kind: String,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: String,
    #[serde(default, deserialize_with = "null_as_default")]
    kind: Kind,
    #[serde(default, deserialize_with = "null_as_default")]
    resource: Resource,
    #[serde(default, deserialize_with = "null_as_default")]
    sub_resource: String,
    operation: Operation,
    #[serde(default, deserialize_with = "null_as_default")]
    namespace: String,
    #[serde(default, deserialize_with = "null_as_default")]
    name: String,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Kind {
    #[serde(default, deserialize_with = "null_as_default")]
    kind: String,
}

#[derive(Default, Deserialize)]
struct Resource {
    #[serde(default, deserialize_with = "null_as_default")]
    group: String,
    #[serde(default, deserialize_with = "null_as_default")]
    resource: String,
}

impl Request<'_> {
    /// The first member that exceeds the maximum length.
    fn too_long(&self) -> Option<&'static str> {
        let Resource { group, resource } = &self.resource;
        let members = [
            ("uid", &self.uid),
            ("kind.kind", &self.kind.kind),
            ("resource.group", group),
            ("resource.resource", resource),
            ("subResource", &self.sub_resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
        ];
        members.into_iter().find(|(_, text)| text.len() > MAX_NAME_BYTES).map(|(member, _)| member)
    }
}

/// Why a body is not a valid review. Never quotes values of the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    #[error("the body is no AdmissionReview: line {line}, column {column}")]
    Form { line: usize, column: usize },
    #[error("the body is a {kind:?} of {version:?}, not an AdmissionReview of {}", VERSIONS.join(" or "))]
    Kind { kind: String, version: String },
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// A name exceeds the maximum length of Kubernetes names.
    #[error("{member} of the request has more than {MAX_NAME_BYTES} bytes")]
    TooLong { member: &'static str },
}

impl ReviewRequest {
    pub fn parse(body: &Bytes) -> Result<Self, ReviewError> {
        let review: Review<'_> = serde_json::from_slice(body)
            .map_err(|error| ReviewError::Form { line: error.line(), column: error.column() })?;
        let api_version = match VERSIONS.into_iter().find(|known| *known == review.api_version) {
            Some(version) if review.kind == "AdmissionReview" => version,
            _ => {
                let shortened = |text: String| text.chars().take(MAX_NAME_BYTES).collect();
                return Err(ReviewError::Kind { kind: shortened(review.kind), version: shortened(review.api_version) });
            }
        };
        let request = review.request.ok_or(ReviewError::NoRequest)?;
        if let Some(member) = request.too_long() {
            return Err(ReviewError::TooLong { member });
        }
        // An API server sends null for an absent object.
        let shared = |raw: Option<&RawValue>| {
            raw.map(RawValue::get).filter(|text| *text != "null").map(|text| body.slice_ref(text.as_bytes()))
        };
        Ok(Self {
            api_version,
            kind: request.kind.kind,
            group: request.resource.group,
            resource: request.resource.resource,
            sub_resource: request.sub_resource,
            operation: request.operation,
            namespace: request.namespace,
            name: request.name,
            object: shared(request.object),
            old_object: shared(request.old_object),
            uid: request.uid,
            held: Held::default(),
        })
    }

    /// Bytes of the objects.
    pub(super) fn bytes(&self) -> usize {
        [&self.object, &self.old_object].into_iter().flatten().map(Bytes::len).sum()
    }

    /// Keeps this until the review is done.
    pub(super) fn hold(&mut self, reserved: impl Send + Sync + 'static) {
        self.held = Held(Some(Arc::new(reserved)));
    }

    /// The object for messages: `garden-dev/x` or `x`.
    pub fn object_name(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// The status of a denial. For field errors, it has the same details as the API server's own validation errors.
    fn status(&self, Denial { code, reason, message, causes }: Denial) -> Value {
        let message = shortened(&message, MAX_MESSAGE_BYTES);
        let mut status = json!({"status": "Failure", "code": code, "reason": reason, "message": message});
        if !causes.is_empty() {
            status["details"] = json!({"name": self.name, "group": self.group, "kind": self.kind, "causes": causes});
        }
        status
    }

    /// Serializes the response.
    pub fn response(&self, verdict: Verdict) -> Vec<u8> {
        let mut response = json!({"uid": self.uid});
        match verdict {
            Verdict::Allowed { patch, warnings } => {
                response["allowed"] = true.into();
                if !patch.is_empty() {
                    response["patchType"] = "JSONPatch".into();
                    response["patch"] = BASE64.encode(json!(patch).to_string()).into();
                }
                if !warnings.is_empty() {
                    response["warnings"] = bounded(warnings).into();
                }
            }
            Verdict::Denied(denial) => {
                response["allowed"] = false.into();
                response["status"] = self.status(denial);
            }
        }
        json!({"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response})
            .to_string()
            .into_bytes()
    }
}

/// Limits the number and length of warnings.
fn bounded(warnings: Vec<String>) -> Vec<String> {
    let count = warnings.len();
    let mut observed: Vec<String> =
        warnings.iter().take(MOST_WARNINGS).map(|warning| shortened(warning, MAX_WARNING_BYTES)).collect();
    if count > MOST_WARNINGS {
        observed.push(format!("and {} more warnings", count - MOST_WARNINGS));
    }
    observed
}

/// The result of a review.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allowed {
        /// Changes to the object.
        patch: Patch,
        /// Warnings for the user.
        warnings: Vec<String>,
    },
    Denied(Denial),
}

impl Verdict {
    /// Allows the object unchanged.
    pub const ALLOWED: Self = Self::Allowed { patch: Patch(Vec::new()), warnings: Vec::new() };
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// HTTP status: 422 for an invalid object, 5xx if the object is not at fault.
    pub code: u16,
    /// Reason in terms of Kubernetes: `Invalid`, `InternalError`, `Timeout`.
    pub reason: &'static str,
    pub message: String,
    /// One cause per field, for programs and `kubectl`.
    pub causes: Vec<DenialCause>,
}

/// A Kubernetes `StatusCause`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DenialCause {
    /// For example `FieldValueInvalid`.
    pub reason: &'static str,
    /// The error without the field.
    pub message: String,
    /// The field path.
    pub field: String,
}

impl Denial {
    /// A failure that the object did not cause.
    pub fn internal(message: String) -> Self {
        Self { code: 500, reason: "InternalError", message, causes: Vec::new() }
    }

    /// The review exceeded its deadline.
    pub(crate) fn timeout(message: String) -> Self {
        Self { code: 504, reason: "Timeout", message, causes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use json_patch::jsonptr::PointerBuf;
    use json_patch::{PatchOperation, RemoveOperation};

    use super::*;

    fn parse(body: &str) -> Result<ReviewRequest, ReviewError> {
        ReviewRequest::parse(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn objects_share_the_memory_of_the_body() {
        let body = Bytes::from_static(
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE",
                "resource":{"group":"g","version":"v1","resource":"things"},"namespace":"n","name":"x",
                "object":{"a" : 1},"oldObject":null}}"#,
        );
        let request = ReviewRequest::parse(&body).unwrap();
        let object = request.object.as_ref().unwrap();
        assert_eq!(&object[..], br#"{"a" : 1}"#);
        assert!(body.as_ptr_range().contains(&object.as_ptr()));
        assert_eq!(request.old_object, None);
        assert_eq!((request.operation, request.object_name().as_str()), (Operation::Update, "n/x"));
        let reply: Value = serde_json::from_slice(&request.response(Verdict::ALLOWED)).unwrap();
        assert_eq!(
            reply,
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "u", "allowed": true}})
        );
    }

    #[test]
    fn reports_invalid_reviews_without_their_content() {
        for (body, target) in [
            ("", "line 1, column 0"),
            ("[]", "is no AdmissionReview"),
            (r#"{"kind":"Secret","apiVersion":"v1","data":{"a":"topsecret"}}"#, r#""Secret" of "v1""#),
            (r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#, "no request"),
            (
                r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"topsecret","operation":1}}"#,
                "is no AdmissionReview",
            ),
        ] {
            let error = parse(body).unwrap_err().to_string();
            assert!(error.contains(target) && !error.contains("topsecret"), "{body}: {error}");
        }
    }

    #[test]
    fn no_name_is_longer_than_a_name() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for member in ["uid", "subResource", "namespace", "name"] {
            let mut review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                "request": {"uid": "u", "operation": "CREATE"}});
            review["request"][member] = long[1..].into();
            parse(&review.to_string()).unwrap();
            review["request"][member] = long.as_str().into();
            assert_eq!(parse(&review.to_string()).unwrap_err(), ReviewError::TooLong { member });
        }
        let error = parse(&json!({"kind": long.repeat(99), "apiVersion": "v1"}).to_string()).unwrap_err().to_string();
        assert!(error.len() < 400, "{}", error.len());
    }

    #[test]
    fn response_has_the_version_of_the_request() {
        let old = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","operation":"CREATE",
            "kind":{"group":"g","version":"v1","kind":"K"},"resource":{"group":"g"},"namespace":"s","name":"n"}}"#;
        let removal = RemoveOperation { path: PointerBuf::from_tokens(["a"]) };
        let patch = Patch(vec![PatchOperation::Remove(removal)]);
        let reply = parse(old).unwrap().response(Verdict::Allowed { patch, warnings: vec!["w".to_owned()] });
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(reply["apiVersion"], "admission.k8s.io/v1beta1");
        assert_eq!(
            BASE64.decode(reply["response"]["patch"].as_str().unwrap()).unwrap(),
            br#"[{"op":"remove","path":"/a"}]"#
        );
        assert_eq!(reply["response"]["warnings"], json!(["w"]));
        let denial = Denial {
            code: 422,
            reason: "Invalid",
            message: "m".to_owned(),
            causes: vec![DenialCause { reason: "FieldValueInvalid", message: "c".to_owned(), field: "f".to_owned() }],
        };
        let reply: Value = serde_json::from_slice(&parse(old).unwrap().response(Verdict::Denied(denial))).unwrap();
        assert_eq!(
            reply["response"]["status"],
            json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "m",
            "details": {"name": "n", "group": "g", "kind": "K", "causes": [
                {"reason": "FieldValueInvalid", "message": "c", "field": "f"},
            ]}})
        );
    }

    #[test]
    fn responses_are_bounded() {
        let query = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE"}}"#;
        let reply = |verdict: Verdict| parse(query).unwrap().response(verdict);
        let warnings: Vec<String> =
            (0..1000).map(|number| format!("{number} {}", "\u{202e}ä\r\n".repeat(2000))).collect();
        let warned = reply(Verdict::Allowed { patch: Patch::default(), warnings });
        assert!(warned.len() < 64 * 1024 && String::from_utf8_lossy(&warned).contains("and 980 more warnings"));
        let denied = reply(Verdict::Denied(Denial::internal("<".repeat(1 << 20))));
        assert!(denied.len() < 64 * 1024, "{}", denied.len());
    }
}
