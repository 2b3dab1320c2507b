//! One file for each behaviour that a user notices.

mod cloud_profiles;
mod given_certificates;
mod huge;
mod live_forecast;
mod live_preview;
mod live_profiles;
mod malformed;
mod namespaced;
mod registration;
mod rotation;
mod shoots;
mod sidecar;
mod unreachable_garden;
