//! A fake EC2 over HTTP: `DescribeImages` with pages, for requests with a valid AWS Signature Version 4.
//!
//! It verifies signature, region and form, returns pages with `nextToken`, and fails on request. It does not filter,
//! see `moto` for that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use aws_lc_rs::hmac;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use crate::cloud_server::CloudServer;
use crate::form::pairs;

/// The accepted access key and its secret.
pub const ACCESS_KEY: (&str, &str) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");

#[derive(Debug, Default)]
struct Known {
    /// Images by region, as XML.
    images: BTreeMap<String, Vec<String>>,
    page: usize,
    /// Failures for the next requests.
    failures: Vec<(u16, String)>,
    requests: Vec<BTreeMap<String, String>>,
}

/// The fake EC2. Dropping it stops it.
pub struct Ec2 {
    server: CloudServer,
    known: Arc<Mutex<Known>>,
}

impl Ec2 {
    /// Listens on a free local port. `page` is the number of images per response.
    pub fn start(page: usize) -> Result<Self> {
        let known = Arc::new(Mutex::new(Known { page, ..Known::default() }));
        let server = CloudServer::start("ec2", Router::new().fallback(response).with_state(Arc::clone(&known)))?;
        Ok(Self { server, known })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Adds an image to a region: the members of its item, as XML.
    pub fn has(&self, region: &str, item: &str) {
        lock(&self.known).images.entry(region.to_owned()).or_default().push(format!("<item>{item}</item>"));
    }

    /// Fails the next request with this response.
    pub fn fail(&self, status: u16, body: &str) {
        lock(&self.known).failures.push((status, body.to_owned()));
    }

    /// The forms of all requests so far.
    pub fn requests(&self) -> Vec<BTreeMap<String, String>> {
        lock(&self.known).requests.clone()
    }
}

/// An error in EC2's format.
pub fn error(code: &str, message: &str) -> String {
    format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>0</RequestID></Response>"
    )
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn response(State(known): State<Arc<Mutex<Known>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let form = pairs(&String::from_utf8_lossy(&body));
    let mut known = lock(&known);
    known.requests.push(form.clone());
    let (status, text) = match region_of_signed(&parts.headers, &body) {
        None => (401, error("AuthFailure", "AWS was not able to validate the provided access credentials")),
        Some(_) if !known.failures.is_empty() => known.failures.remove(0),
        Some(region) => known.describe_images(&region, &form),
    };
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), text).into_response()
}

impl Known {
    fn describe_images(&self, region: &str, form: &BTreeMap<String, String>) -> (u16, String) {
        let has = |name: &str, value: &str| form.get(name).is_some_and(|known| known == value);
        if !has("Action", "DescribeImages") || !has("Version", "2016-11-15") || !form.contains_key("MaxResults") {
            return (400, error("InvalidAction", "The action is not valid for this web service."));
        }
        let start: usize =
            form.get("NextToken").and_then(|token| token.strip_prefix("from ")?.parse().ok()).unwrap_or_default();
        let images = self.images.get(region).map(Vec::as_slice).unwrap_or_default();
        let page: String = images.iter().skip(start).take(self.page).map(String::as_str).collect();
        let next = start + self.page;
        let next = if next < images.len() { format!("<nextToken>from {next}</nextToken>") } else { String::new() };
        let reply = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DescribeImagesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
             <requestId>0</requestId><imagesSet>{page}</imagesSet>{next}</DescribeImagesResponse>"
        );
        (200, reply)
    }
}

/// The region that a request is signed for. `None` if the signature is invalid or omits required headers.
fn region_of_signed(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let authorization = header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let part = |name: &str| authorization.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let scope = part("Credential")?.strip_prefix(ACCESS_KEY.0)?.strip_prefix('/')?;
    let (signed, signature, time) = (part("SignedHeaders")?, part("Signature")?, header("x-amz-date")?);
    if !["content-type", "host", "x-amz-date"].iter().all(|name| signed.split(';').any(|signed| signed == *name)) {
        return None;
    }
    let lines = signed.split(';').map(|name| Some(format!("{name}:{}\n", header(name)?.trim())));
    let canonical = format!("POST\n/\n\n{}\n{signed}\n{}", lines.collect::<Option<String>>()?, digest(body));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", digest(canonical.as_bytes()));
    let key = scope.split('/').fold(format!("AWS4{}", ACCESS_KEY.1).into_bytes(), |key, step| mac(&key, step));
    let [_, region, "ec2", "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else { return None };
    (hex::encode(mac(&key, &text)) == signature).then(|| region.to_owned())
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}
