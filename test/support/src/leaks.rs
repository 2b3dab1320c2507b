//! Searches texts for the secrets of shoot.yaml.

use std::sync::LazyLock;

use anyhow::{Result, ensure};
use k8s_openapi::ByteString;
use serde_json::json;

/// User data and credentials.
pub const SECRETS: [&str; 2] = ["userdata-of-the-live-tests", "clientsecret-of-the-live-tests"];

/// Fails if a text contains a secret.
pub fn ensure_no_secrets(location: &str, text: &str) -> Result<()> {
    static FORMS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        SECRETS.into_iter().flat_map(|secret| forms(secret).into_iter().map(move |form| (secret, form))).collect()
    });
    let found = FORMS.iter().find(|(_, form)| text.contains(form.as_str()));
    ensure!(found.is_none(), "{location} tells a secret: {found:?}");
    Ok(())
}

/// The secret as text, as bytes in debug output, and in base64. Base64 depends on the position of the bytes, so all
/// three alignments are searched, without the ends that also depend on neighbours.
fn forms(secret: &str) -> Vec<String> {
    let numbers = format!("{:?}", secret.as_bytes());
    let mut forms = vec![secret.to_owned(), numbers.trim_matches(['[', ']']).to_owned()];
    for shift in 0..3 {
        let encoded = json!(ByteString([&b"xxx"[..shift], secret.as_bytes()].concat()));
        let encoded = encoded.as_str().unwrap_or_default().trim_end_matches('=');
        forms.push(encoded[if shift == 0 { 0 } else { 4 }..encoded.len() - 4].to_owned());
    }
    forms
}
