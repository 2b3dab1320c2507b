//! Compresses long-lived texts that are rarely read: JSON and scripts shrink to a third or a tenth.

use std::fmt;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};

/// Reusable encoder. It has 300 KB, so creating one for each text would take longer than the compression.
static IDLE: Mutex<Option<DeflateEncoder<Vec<u8>>>> = Mutex::new(None);

/// A compressed text.
#[derive(Clone)]
pub struct PackedText {
    packed: Box<[u8]>,
    unpacked_length: usize,
}

impl PackedText {
    /// Compresses a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let encoder = idle().take();
        let mut encoder = encoder.unwrap_or_else(|| DeflateEncoder::new(Vec::new(), Compression::fast()));
        // Writing to memory can't fail; an incomplete result would fail to decompress.
        let _ = encoder.write_all(text.as_bytes());
        let packed = encoder.reset(Vec::new()).inspect(|_| *idle() = Some(encoder));
        Self { packed: packed.unwrap_or_default().into(), unpacked_length: text.len() }
    }

    /// Decompresses the text; `None` if the compressed data is incomplete.
    #[must_use]
    pub fn unpack(&self) -> Option<String> {
        let mut text = Vec::with_capacity(self.unpacked_length);
        let end = Decompress::new(false).decompress_vec(&self.packed, &mut text, FlushDecompress::Finish).ok()?;
        if end == Status::StreamEnd { String::from_utf8(text).ok() } else { None }
    }

    /// Compressed size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.packed.len()
    }
}

/// Omits the text, which may be a Secret.
impl fmt::Debug for PackedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PackedText").field(&self.packed.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_whole_is_no_text() {
        let text = "echo hello\n".repeat(1000);
        let packed = PackedText::of(&text);
        assert!(packed.size() < text.len() / 3, "{} bytes", packed.size());
        assert_eq!(packed.unpack().as_deref(), Some(text.as_str()));
        assert!(!format!("{packed:?}").contains("hello"));
        let half = PackedText { packed: packed.packed[..packed.size() / 2].into(), ..packed };
        assert_eq!(half.unpack(), None);
    }
}
