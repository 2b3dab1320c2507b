//! Decodes gzip-compressed JSON as a stream. A small input may decompress to a large output, so bytes, objects and
//! values of the output are bounded.

use std::io::{self, BufReader, Read};

use flate2::read::GzDecoder;

/// Maximum output size. Ten thousand machines have about 30 MB. A state has at most 1.5 MB compressed, and one with a
/// higher compression ratio was not written by gardenlet.
pub const MOST_BYTES: u64 = 128 << 20;
/// Maximum number of objects, including nested ones. A machine has about eight.
pub const MOST_OBJECTS: u64 = 1_000_000;
/// Maximum number of list items and object members. A machine has about a hundred.
const MOST_VALUES: u64 = 8_000_000;

/// Decompresses gzip for a JSON decoder. Reading fails with [`io::ErrorKind::FileTooLarge`] beyond the limits.
pub fn unpacked_json(packed: &[u8]) -> impl Read + '_ {
    BufReader::new(Bounded {
        inner: GzDecoder::new(packed),
        bytes: MOST_BYTES,
        objects: MOST_OBJECTS,
        values: MOST_VALUES,
    })
}

/// Counts braces and commas, including those in strings.
struct Bounded<R> {
    inner: R,
    bytes: u64,
    objects: u64,
    values: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let count = |target: u8| buffer[..read].iter().filter(|byte| **byte == target).count() as u64;
        let left = [(&mut self.bytes, read as u64), (&mut self.objects, count(b'{')), (&mut self.values, count(b','))];
        for (left, used) in left {
            let rest = left.checked_sub(used).ok_or_else(too_large)?;
            *left = rest;
        }
        Ok(read)
    }
}

fn too_large() -> io::Error {
    let limits = format!("it is larger than {MOST_BYTES} bytes, {MOST_OBJECTS} objects or {MOST_VALUES} values");
    io::Error::new(io::ErrorKind::FileTooLarge, limits)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::Value;

    use super::*;

    #[test]
    fn rejects_millions_of_small_values() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(format!("[{}0]", "0,".repeat(MOST_VALUES as usize + 1)).as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let error = serde_json::from_reader::<_, Value>(unpacked_json(&packed)).unwrap_err();
        assert!(error.is_io() && error.to_string().contains("8000000 values"), "{error}");
    }
}
