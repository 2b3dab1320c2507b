//! `WorkerStatus`: the `status.providerStatus` that this extension writes into the Worker. Strict.

use crate::provider::image::used_images_status;

used_images_status! {
    /// The image in the region of the shoot.
    ami, super::API_VERSION
}
