//! Detects writes rejected for their size: by the request limit of the API server, the limit of etcd, or the limit of a
//! field.

/// Error messages for status codes that also have other causes.
const WORDS: [&str; 4] = ["request is too large", "message larger than max", "too long", "can have at most"];

/// Whether a write was rejected for its size, so that a shorter one may be accepted.
pub fn is_too_large(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let message = status.message.to_lowercase();
    match status.code {
        413 => true,
        400 | 422 | 500 => WORDS.iter().any(|words| message.contains(words)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn detects_rejections_for_size() {
        let refused = |code: u16, message: &str| {
            is_too_large(&kube::Error::Api(Box::new(Status::failure(message, "reason").with_code(code))))
        };
        assert!(refused(413, "Request entity too large: limit is 3145728"));
        assert!(refused(413, "<html>client intended to send too large body</html>"));
        assert!(refused(500, "etcdserver: request is too large"));
        assert!(refused(500, "rpc error: trying to send message larger than max (2200000 vs. 2097152)"));
        assert!(refused(422, "metadata.annotations: Too long: may not be more than 262144 bytes"));
        assert!(refused(422, "note: Invalid value: \"\": can have at most 1024 bytes"));
        assert!(!refused(422, "spec.replicas: Invalid value: -1: must be positive"));
        assert!(!refused(409, "the object has been modified"));
        assert!(!refused(503, "too long a wait"));
    }
}
