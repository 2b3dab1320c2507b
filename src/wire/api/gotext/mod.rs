//! Text in the formats of Go.
//!
//! The names and hashes of this extension depend on text formatted by Go programs, so equal values must result in equal
//! bytes:
//!
//! * [`json`]: the JSON of a stored custom resource, and decoding with the path of errors.
//! * [`yaml`]: files with one or several YAML or JSON documents, by the scalar rules of `sigs.k8s.io/yaml`;
//! * [`yaml_edit`]: changes of such a file that keep its order and comments.
//! * [`locations`]: the line numbers of members in such a file, for messages.
//! * [`quantity`]: `resource.Quantity`, for example `1024Mi`, which Go prints as `1Gi`.
//! * [`duration`]: `metav1.Duration`, for example `90s`, which Go prints as `1m30s`.
//! * [`version`], [`version_constraint`]: semantic versions, parsed as leniently as by `Masterminds/semver`.
//! * [`time`]: `time.Time` in the format of its `String` method.
//! * [`field`]: field errors in the format of Kubernetes.
//!
//! Every function accepts untrusted text: it returns an error and never panics. The behaviour of Go was measured; the
//! tables are in `test/vectors/gotext`.

pub mod duration;
pub mod field;
pub mod json;
pub mod locations;
pub mod quantity;
pub mod time;
pub mod version;
pub mod version_constraint;
pub mod yaml;
pub mod yaml_edit;
