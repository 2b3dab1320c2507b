//! Webhooks of a cluster: an HTTPS server for admission reviews, its certificate, and its registration.
//!
//! ```text
//!  API server ──HTTPS──► server ── size limit, deadline ──► review ──► Reviewer ──► Verdict ──► response
//!                          │ serves
//!                          ▼
//!  LiveCertificate ◄── files       given certificates, read again when they change
//!                  ◄── certificate_authority   self-managed CA in a Secret: rotation determines the due step, issue signs
//!                          │ bundle       clocks: ours and the API server's; trust: whether it accepts the served
//!   chain
//!                          ▼
//!  registration: ValidatingWebhookConfiguration, MutatingWebhookConfiguration
//! ```
//!
//! Other modules define the reviews. A command passes its [`Reviewer`]s with their paths to [`run`], which runs the
//! whole process. Such commands share [`WebhookArguments`] and [`WebhookMetrics`].

mod arguments;
mod certificate_authority;
#[cfg(test)]
mod clock_jumps;
mod clocks;
mod files;
mod issue;
mod live_certificate;
mod metrics;
mod process;
mod registration;
mod review;
mod rotation;
mod server;
mod trust;

pub use arguments::WebhookArguments;
pub(crate) use certificate_authority::{CaBundle, CertificateAuthority};
pub(crate) use files::CertificateFiles;
pub(crate) use live_certificate::LiveCertificate;
pub use metrics::WebhookMetrics;
pub use process::{Served, run};
pub use registration::{Address, Registration, Webhook, WebhookKind, WebhookRule, publish};
pub use review::{Denial, DenialCause, Operation, ReviewRequest, Verdict};
pub(crate) use rotation::Lifetimes;
pub use server::{Observer, Reviewer, Routes, serve};
