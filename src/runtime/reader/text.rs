//! Decodes files as text: UTF-8, UTF-16 as written by PowerShell redirection, or either compressed with gzip.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Maximum size of one file's text after decompression.
pub(crate) const MAX_BYTES: u64 = 512 << 20;

/// The magic bytes of gzip, and the byte order marks of UTF-16.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const UTF16_LE: [u8; 2] = [0xff, 0xfe];
const UTF16_BE: [u8; 2] = [0xfe, 0xff];

/// A file that cannot be read as text. The message never quotes the content, because it may contain secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// An error from the operating system.
    #[error("can't be read: {}", failure(.0))]
    Io(io::Error),
    /// A device has no end, and a folder has no text.
    #[error("{0} is not a file that can be read")]
    NotAFile(&'static str),
    /// Larger than the limit. Contains the size, if known, and the limit.
    #[error("{}more than the {} MiB that are read of a file", size(*.0), .1 >> 20)]
    TooLarge(Option<u64>, u64),
    /// Corrupt gzip.
    #[error("the gzip can't be unpacked")]
    Packed,
    /// No supported encoding.
    #[error("not text: neither UTF-8 nor UTF-16 (the first byte that doesn't fit is number {0})")]
    NotText(usize),
}

fn size(bytes: Option<u64>) -> String {
    bytes.map(|bytes| format!("{} MiB are ", bytes >> 20)).unwrap_or_default()
}

/// The operating system's message without the error number.
fn failure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Reads a file, or standard input for `-`, with a limit in bytes.
///
/// # Errors
/// If it cannot be read, is too large, or is not text.
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> Result<String, TextError> {
    if path.as_os_str() == "-" {
        return decode(bounded(io::stdin().lock(), max_bytes)?, max_bytes);
    }
    let metadata = fs::metadata(path).map_err(TextError::Io)?;
    if metadata.is_dir() {
        return Err(TextError::NotAFile("a folder"));
    }
    let is_named_stream = ["/dev/stdin", "/dev/null"].iter().any(|stream| path == Path::new(stream));
    if (metadata.file_type().is_char_device() && !is_named_stream) || metadata.file_type().is_block_device() {
        return Err(TextError::NotAFile("a device"));
    }
    if metadata.len() > max_bytes {
        return Err(TextError::TooLarge(Some(metadata.len()), max_bytes));
    }
    decode(bounded(File::open(path).map_err(TextError::Io)?, max_bytes)?, max_bytes)
}

fn bounded(reader: impl Read, max_bytes: u64) -> Result<Vec<u8>, TextError> {
    let mut bytes = Vec::new();
    reader.take(max_bytes + 1).read_to_end(&mut bytes).map_err(TextError::Io)?;
    if bytes.len() as u64 > max_bytes {
        return Err(TextError::TooLarge(None, max_bytes));
    }
    Ok(bytes)
}

/// Decodes bytes in any supported encoding.
///
/// # Errors
/// If the encoding is not supported, or the text exceeds the limit after decompression.
pub(crate) fn decode(bytes: Vec<u8>, max_bytes: u64) -> Result<String, TextError> {
    let bytes = if bytes.starts_with(&GZIP) {
        bounded(MultiGzDecoder::new(bytes.as_slice()), max_bytes).map_err(|error| match error {
            TextError::Io(_) => TextError::Packed,
            other => other,
        })?
    } else {
        bytes
    };
    // JSON and YAML begin with an ASCII character, so the position of the zero byte reveals the byte order of UTF-16.
    match bytes.as_slice() {
        [first, second, ..] if [*first, *second] == UTF16_LE => utf16(&bytes[2..], u16::from_le_bytes),
        [first, second, ..] if [*first, *second] == UTF16_BE => utf16(&bytes[2..], u16::from_be_bytes),
        [first, 0, ..] if *first != 0 => utf16(&bytes, u16::from_le_bytes),
        [0, second, ..] if *second != 0 => utf16(&bytes, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|error| TextError::NotText(error.utf8_error().valid_up_to() + 1)),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, TextError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(TextError::NotText(bytes.len()));
    }
    let mut text = String::with_capacity(pairs.len());
    let units = pairs.iter().map(|pair| unit(*pair));
    for (index, character) in char::decode_utf16(units).enumerate() {
        text.push(character.map_err(|_| TextError::NotText(2 * index + 1))?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn utf16(text: &str, mark: &[u8], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
    }

    #[test]
    fn reads_each_encoding() {
        let text = "kind: Shöot 🚜\n";
        for bytes in [
            text.as_bytes().to_vec(),
            gzip(text.as_bytes()),
            utf16(text, &UTF16_LE, u16::to_le_bytes),
            utf16(text, &UTF16_BE, u16::to_be_bytes),
            utf16(text, &[], u16::to_le_bytes),
            utf16(text, &[], u16::to_be_bytes),
            gzip(&utf16(text, &UTF16_LE, u16::to_le_bytes)),
        ] {
            assert_eq!(decode(bytes, 1 << 20).unwrap(), text);
        }
    }

    #[test]
    fn names_the_reason_for_unreadable_bytes() {
        let error = |bytes: Vec<u8>| decode(bytes, 1 << 10).unwrap_err().to_string();
        assert_eq!(
            error(b"ab\xffc".to_vec()),
            "not text: neither UTF-8 nor UTF-16 (the first byte that doesn't fit is number 3)"
        );
        assert_eq!(error(gzip(b"kind")[..12].to_vec()), "the gzip can't be unpacked");
        assert_eq!(error(gzip(&[b'a'; 4096])), "more than the 0 MiB that are read of a file");
    }

    #[test]
    fn refuses_devices_and_folders() {
        let error = |path: &str| read_text(Path::new(path), 1 << 10).unwrap_err().to_string();
        assert_eq!(error("/dev/zero"), "a device is not a file that can be read");
        assert_eq!(error("/"), "a folder is not a file that can be read");
        assert_eq!(error("/no such file"), "can't be read: no such file or folder");
        assert_eq!(read_text(Path::new("/dev/null"), 1).unwrap(), "");
    }
}
