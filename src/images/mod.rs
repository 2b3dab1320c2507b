//! Machine images by flavor: which there are, which one is used, and that everybody uses the same one (docs/images.md).
//!
//! ```text
//!  files of clouds ─► sources ─► Catalogue ─┐
//!                                           ├─► candidates ─► resolve ─► Lock ─► fill ─► both halves of a CloudProfile
//!  Lookup: names ─► versions and flavors ───┘       (why, why not)        │
//!                                                                         ├─► check    profile, lock and catalogue agree
//!                                                                         ├─► promote  to another landscape
//!                                                                         └─► unused   which nobody needs
//! ```
//!
//! * [`reference`](mod@reference): how clouds call an image; [`record`]: an image with what is known about it;
//! * [`shared`]: what many images have in common; [`source_path`]: how listings are named; [`sources`]: listings that clouds' own tools print, and Garden Linux publishes; [`catalogue`]: all of them together;
//! * [`versions`]: ranges of versions; [`pattern`]: names with variables; [`lookup`]: which names mean which version and flavor;
//! * [`query`]: what a cloud is asked for, where files are made by `images fetch`;
//! * [`resolution`]: the image of a flavor, and why the others are not;
//! * [`lock`]: what was resolved first, and what has become newer since; [`lock_file`]: as a document;
//! * [`objects`]: the same for objects of a cluster;
//! * [`version_users`]: who uses the versions of a profile, for `unused` and `cloudprofile versions`;
//! * [`fill`], [`check`], [`unused`], [`fn@promotion::promote`]: what follows from it.
//!
//! There is no client here: an image is what a file says of it, so air-gapped landscapes are nothing special.

mod asked_names;
pub mod catalogue;
pub mod check;
pub mod fill;
pub mod lock;
pub mod lock_file;
pub mod lookup;
pub mod objects;
pub mod pattern;
pub mod promotion;
pub mod query;
pub mod record;
pub mod reference;
pub mod resolution;
pub mod shared;
pub mod source_path;
pub mod sources;
pub mod unused;
mod users;
pub mod version_users;
pub mod versions;

/// Group and version of documents that are no objects of a cluster.
const API_VERSION: &str = "gardener-extension-worker/v1alpha1";
