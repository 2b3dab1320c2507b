//! SHA-256, by which an image names everything in it.

use sha2::{Digest as _, Sha256};

/// The digest of bytes, as hexadecimal digits.
#[must_use]
pub fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}
