//! Text as Go prints and parses it.
//!
//! The names and hashes of this extension are made from text that a Go program printed, so the same value has to come
//! out as the same bytes here:
//!
//! * [`json`]: the JSON text of a stored custom resource, and decoding with the path of what is wrong.
//! * [`yaml`]: files with one or several YAML or JSON documents, by the scalar rules of `sigs.k8s.io/yaml`.
//! * [`places`]: the lines of such a file, for messages.
//! * [`quantity`]: `resource.Quantity`, for example `1024Mi`, which Go prints as `1Gi`.
//! * [`duration`]: `metav1.Duration`, for example `90s`, which Go prints as `1m30s`.
//! * [`version`], [`version_constraint`]: semantic versions as leniently as `Masterminds/semver` reads them.
//! * [`time`]: `time.Time` as its `String` method prints it.
//! * [`field`]: errors of fields as Kubernetes reports them.
//!
//! Every function takes hostile text: it answers with an error and never panics. What Go answers was measured; the
//! tables are in `test/vectors/gotext`.

pub mod duration;
pub mod field;
pub mod json;
pub mod places;
pub mod quantity;
pub mod time;
pub mod version;
pub mod version_constraint;
pub mod yaml;
