//! Machine images by flavor: which images exist, which one is used, and how all users get the same one
//! (docs/images.md).
//!
//! ```text
//!  files of clouds ─► sources ─► Catalogue ─┐
//!                                           ├─► candidates ─► resolve ─► Lock ─► fill ─► both parts of a CloudProfile
//!  Lookup: names ─► versions and flavors ───┘     (with reasons)          │
//!                                                                         ├─► check    profile, lock and catalogue agree
//!                                                                         ├─► promote  to another landscape
//!                                                                         └─► unused   images without users
//! ```
//!
//! * [`reference`](mod@reference): names of images at clouds; [`record`]: an image and its data;
//! * [`shared`]: memory for values that many images share; [`source_path`]: arguments for listings; [`sources`]:
//!   listings from the clouds' own tools and from Garden Linux; [`catalogue`]: all listings merged;
//! * [`versions`]: version ranges; [`pattern`]: names with variables; [`lookup`]: which names stand for which version
//!   and flavor;
//! * [`query`]: which images `images fetch` requests from a cloud;
//! * [`resolution`]: the image of a flavor, and why the other images were not chosen;
//! * [`variants`]: images of different products under one flavor;
//! * [`lock`]: the first resolutions, and newer images since; [`lock_file`]: the lock as a document;
//! * [`objects`]: the same for objects of a cluster;
//! * [`template_users`]: who uses the machine templates of Cluster API;
//! * [`version_users`]: who uses the versions of a profile, for `unused` and `cloudprofile versions`;
//! * [`supersede`]: the versions that a filled version replaces;
//! * [`coverage`]: which images a listing would have if they existed;
//! * [`identity`]: with which identity a lookup sends requests;
//! * [`fill`], [`check`], [`unused`], [`fn@promotion::promote`]: what follows from it.
//!
//! This room has no client: all data about images comes from files, so air-gapped landscapes work in the same way.

pub mod attributes;
pub mod catalogue;
pub mod check;
pub mod coverage;
pub mod fill;
pub mod identity;
pub mod lock;
pub mod lock_file;
pub mod lookup;
pub mod objects;
pub mod pattern;
pub mod promotion;
pub mod query;
pub mod record;
pub mod reference;
mod requested_names;
pub mod resolution;
pub mod shared;
pub mod source_path;
pub mod sources;
pub mod supersede;
pub mod template_users;
pub mod unused;
mod users;
pub mod variants;
pub mod version_users;
pub mod versions;

/// Group and version of documents that are not objects of a cluster.
const API_VERSION: &str = "gardener-extension-worker/v1alpha1";
