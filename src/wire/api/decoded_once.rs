//! Caches the decoded form of a raw document, so that documents shared by many objects are decoded once.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The decoded form of a document, empty until its first use. Clones share it.
#[derive(Clone, Default)]
pub struct DecodedOnce(OnceLock<Arc<dyn Any + Send + Sync>>);

impl DecodedOnce {
    /// Returns the decoded form, and decodes it on first use. If another type is cached, decodes again without caching.
    pub fn get_or_decode<T: Any + Send + Sync>(&self, decode: impl Fn() -> T) -> Arc<T> {
        let kept = self.0.get_or_init(|| Arc::new(decode()));
        Arc::clone(kept).downcast().unwrap_or_else(|_| Arc::new(decode()))
    }
}

impl fmt::Debug for DecodedOnce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.get().is_some() { "decoded" } else { "not decoded yet" })
    }
}
