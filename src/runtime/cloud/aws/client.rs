//! EC2 client for one region, with signed requests and retries.

use std::path::Path;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::credentials::{KeptCredentials, provider_of};
use super::request::{calls, form};
use super::response::{Page, page, refusal};
use crate::cloud::image_source::{ImageSource, ImageSourceError};
use profiles::images::coverage::Coverage;
use profiles::images::identity::Identity;
use profiles::images::query::ImageQuery;
use profiles::images::sources::{Ec2Image, Listing, ec2_listing};

/// Time limit for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a response. A page of images has some megabytes.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of pages of a list.
const MOST_PAGES: usize = 2000;
/// Delays between retries.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(10)];
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// Domains of EC2 by region prefix; all other regions use `amazonaws.com`.
const DOMAINS: [(&str, &str); 4] =
    [("cn-", "amazonaws.com.cn"), ("eusc-", "amazonaws.eu"), ("us-isob-", "sc2s.sgov.gov"), ("us-iso-", "c2s.ic.gov")];

/// A client of EC2 in one region.
pub struct Ec2 {
    client: Client,
    credentials: KeptCredentials,
    region: String,
    endpoint: Url,
}

/// Why a page could not be read.
struct Failure {
    text: String,
    passes: bool,
}

impl Failure {
    fn lasting(text: impl ToString) -> Self {
        Self { text: text.to_string(), passes: false }
    }
}

impl Ec2 {
    /// Clients for these regions, with the credentials of an identity. An `endpoint`, from here or from the AWS
    /// configuration, replaces AWS's own addresses. `secrets` is the folder with the Secrets of identities.
    ///
    /// # Errors
    /// If a region or an address is invalid, or no credentials are configured.
    pub async fn in_regions(
        regions: &[String],
        endpoint: Option<&str>,
        identity: &Identity,
        secrets: Option<&Path>,
    ) -> Result<Vec<Self>, ImageSourceError> {
        let unusable = |text: String| ImageSourceError::new("EC2", text);
        if let Some(wrong) = regions.iter().find(|region| !is_region(region)) {
            return Err(unusable(format!("{wrong:?} is no region")));
        }
        let first = regions.first().cloned().map(Region::new);
        let configuration = aws_config::defaults(BehaviorVersion::latest()).region(first).load().await;
        let credentials = provider_of(identity, secrets, &configuration).await.map_err(unusable)?;
        let credentials = KeptCredentials::new(credentials);
        let client = Client::builder().timeout(REQUEST_TIMEOUT).redirect(Policy::none()).build();
        let client = client.map_err(|error| unusable(error.to_string()))?;
        let endpoint = endpoint.or(configuration.endpoint_url());
        let of_region = |region: &String| {
            let address = endpoint.map_or_else(|| official(region), str::to_owned);
            let endpoint = Url::parse(&address).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
            let endpoint = endpoint.ok_or_else(|| unusable("the endpoint is no http or https address".to_owned()))?;
            Ok(Self { client: client.clone(), credentials: credentials.clone(), region: region.clone(), endpoint })
        };
        regions.iter().map(of_region).collect()
    }

    fn error(&self, text: impl ToString) -> ImageSourceError {
        ImageSourceError::new(format!("EC2 in {}", self.region), text)
    }

    /// Reads all pages of a call.
    async fn pages(&self, call: &[(String, String)], images: &mut Vec<Ec2Image>) -> Result<(), ImageSourceError> {
        let mut next: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let page = self.page(&form(call, next.as_deref(), &self.endpoint)).await?;
            images.extend(page.images);
            match page.next {
                None => return Ok(()),
                more => next = more,
            }
        }
        Err(self.error(format!("more than {MOST_PAGES} pages; name owners, or lookups with fewer names")))
    }

    /// Reads a page, with retries for transient errors.
    async fn page(&self, form: &str) -> Result<Page, ImageSourceError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let failure = match self.send(form).await {
                Ok(page) => return Ok(page),
                Err(failure) => failure,
            };
            match pauses.next() {
                Some(pause) if failure.passes => tokio::time::sleep(pause).await,
                _ => return Err(self.error(failure.text)),
            }
        }
    }

    async fn send(&self, form: &str) -> Result<Page, Failure> {
        let mut request = self.client.post(self.endpoint.clone()).header("content-type", FORM);
        for (name, value) in self.signature(form).await? {
            request = request.header(name, value);
        }
        let no_response = |error: reqwest::Error| {
            let error = anyhow::Error::from(error.without_url());
            Failure { text: format!("{error:#}"), passes: true }
        };
        let mut response = request.body(form.to_owned()).send().await.map_err(no_response)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(no_response)? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(Failure::lasting("the answer is too large"));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return page(&body).map_err(Failure::lasting);
        }
        let refusal = refusal(&body);
        let text = if refusal.code.is_empty() { format!("it answers with status {status}") } else { refusal.text() };
        Err(Failure { text, passes: refusal.is_throttling() || status.is_server_error() || status.as_u16() == 429 })
    }

    /// The headers that sign a request.
    async fn signature(&self, form: &str) -> Result<Vec<(String, String)>, Failure> {
        let identity = self.credentials.get().await.map_err(Failure::lasting)?.into();
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("ec2")
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(Failure::lasting)?;
        let headers = [("content-type", FORM)];
        let body = SignableBody::Bytes(form.as_bytes());
        let request = SignableRequest::new("POST", self.endpoint.as_str(), headers.into_iter(), body);
        let signed = sign(request.map_err(Failure::lasting)?, &parameters.into()).map_err(Failure::lasting)?;
        let headers = signed.output().headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(headers.collect())
    }
}

#[async_trait]
impl ImageSource for Ec2 {
    async fn images(&self, query: &ImageQuery) -> Result<Listing, ImageSourceError> {
        let mut images = Vec::new();
        for call in calls(query) {
            self.pages(&call, &mut images).await?;
        }
        let listing = ec2_listing(images, &self.region).map_err(|error| self.error(error))?;
        Ok(Listing { coverage: vec![Coverage::of_query(query, "aws", &self.region)], ..listing })
    }
}

/// Only these characters, because the region becomes part of a host name.
fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn official(region: &str) -> String {
    let domain = DOMAINS.iter().find(|(beginning, _)| region.starts_with(beginning));
    format!("https://ec2.{region}.{}/", domain.map_or("amazonaws.com", |(_, domain)| domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_its_domain() {
        assert_eq!(official("eu-central-1"), "https://ec2.eu-central-1.amazonaws.com/");
        assert_eq!(official("us-gov-west-1"), "https://ec2.us-gov-west-1.amazonaws.com/");
        assert_eq!(official("cn-north-1"), "https://ec2.cn-north-1.amazonaws.com.cn/");
        assert!(!is_region("evil.example.com/") && !is_region(""));
    }
}
