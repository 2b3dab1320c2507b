//! `WorkerStatus`: the `status.providerStatus` that this extension writes into the Worker. Strict.

use crate::provider::image::used_images_status;

used_images_status! {
    /// Path of the image.
    image, super::API_VERSION
}
