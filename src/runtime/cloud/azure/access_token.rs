//! Adds the access token to each request. All clients of an account share it, and only one request for it runs at a
//! time.
//!
//! The SDK's own policy guards it with a lock of `async-lock` 3.5, in which two waiters keep waking each other while
//! a third one waits for a token. That occupies a whole CPU while a login authority does not answer.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::http::headers::AUTHORIZATION;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{ClientMethodOptions, Context, Request};
use azure_core::time::{Duration, OffsetDateTime};
use tokio::sync::Mutex;

/// How long before its expiry a token is renewed.
const RENEWED_BEFORE: Duration = Duration::minutes(5);

/// A policy that adds an access token to every request and refuses requests without TLS.
pub(super) struct Authorized {
    credential: Arc<dyn TokenCredential>,
    scope: String,
    token: Mutex<Option<AccessToken>>,
}

impl Authorized {
    pub(super) fn new(credential: Arc<dyn TokenCredential>, scope: String) -> Self {
        Self { credential, scope, token: Mutex::default() }
    }

    async fn token(&self, context: &Context<'_>) -> azure_core::Result<Secret> {
        let mut kept = self.token.lock().await;
        let lasts = |token: &&AccessToken, time: Duration| token.expires_on > OffsetDateTime::now_utc() + time;
        if let Some(token) = kept.as_ref().filter(|token| lasts(token, RENEWED_BEFORE)) {
            return Ok(token.token.clone());
        }
        let options = TokenRequestOptions { method_options: ClientMethodOptions { context: context.to_borrowed() } };
        match (self.credential.get_token(&[&self.scope], Some(options)).await, kept.as_ref()) {
            (Ok(token), _) => Ok(kept.insert(token).token.clone()),
            (Err(_), Some(token)) if lasts(&token, Duration::ZERO) => Ok(token.token.clone()),
            (Err(error), _) => Err(error),
        }
    }
}

impl fmt::Debug for Authorized {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authorized").field("scope", &self.scope).finish_non_exhaustive()
    }
}

#[async_trait]
impl Policy for Authorized {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let refused = |why| azure_core::Error::with_message(ErrorKind::Other, why);
        let (following, rest) = next.split_first().ok_or_else(|| refused("no transport"))?;
        if request.url().scheme() != "https" {
            return Err(refused("an access token is sent by TLS only"));
        }
        let token = self.token(context).await?;
        request.insert_header(AUTHORIZATION, format!("Bearer {}", token.secret()));
        following.send(context, request, rest).await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, pending, poll_fn};
    use std::pin::pin;
    use std::sync::Mutex as StdMutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use azure_core::http::headers::Headers;
    use azure_core::http::{AsyncRawResponse, Method, StatusCode, Url};
    use tokio::time::{Duration as Time, sleep};

    use super::*;

    /// Token lifetimes in minutes, one per answer. `None` refuses; once the list is empty, it never answers.
    #[derive(Debug, Default)]
    struct Authority {
        responses: StdMutex<Vec<Option<i64>>>,
        requested: AtomicUsize,
    }

    #[async_trait]
    impl TokenCredential for Authority {
        async fn get_token(
            &self,
            scopes: &[&str],
            _: Option<TokenRequestOptions<'_>>,
        ) -> azure_core::Result<AccessToken> {
            assert_eq!(scopes, ["scope"]);
            let number = self.requested.fetch_add(1, Ordering::Relaxed);
            sleep(Time::from_millis(5)).await;
            let response = self.responses.lock().unwrap().get(number).copied();
            match response {
                None => pending().await,
                Some(None) => Err(azure_core::Error::with_message(ErrorKind::Credential, "refused")),
                Some(Some(minutes)) => {
                    Ok(AccessToken::new(number.to_string(), OffsetDateTime::now_utc() + Duration::minutes(minutes)))
                }
            }
        }
    }

    /// Responds with the token of the request.
    #[derive(Debug)]
    struct Echo;

    #[async_trait]
    impl Policy for Echo {
        async fn send(&self, _: &Context, request: &mut Request, _: &[Arc<dyn Policy>]) -> PolicyResult {
            let token = request.headers().get_str(&AUTHORIZATION)?.to_owned();
            Ok(AsyncRawResponse::from_bytes(StatusCode::Ok, Headers::new(), token))
        }
    }

    fn authorized(responses: &[Option<i64>]) -> (Arc<Authority>, Arc<Authorized>) {
        let authority = Arc::new(Authority { responses: StdMutex::new(responses.to_vec()), ..Authority::default() });
        let credential = Arc::clone(&authority) as Arc<dyn TokenCredential>;
        (authority, Arc::new(Authorized::new(credential, "scope".to_owned())))
    }

    async fn send(policy: &dyn Policy, address: &str) -> Result<String, String> {
        let mut request = Request::new(Url::parse(address).unwrap(), Method::Get);
        let response = policy.send(&Context::new(), &mut request, &[Arc::new(Echo)]).await;
        let response = response.map_err(|error| error.to_string())?.try_into_raw_response().await.unwrap();
        Ok(String::from_utf8(response.body().as_ref().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn reuses_token_until_it_is_about_to_expire() {
        let (authority, policy) = authorized(&[Some(60)]);
        let both = futures::join!(send(&*policy, "https://azure"), send(&*policy, "https://azure"));
        assert_eq!(both, (Ok("Bearer 0".to_owned()), Ok("Bearer 0".to_owned())));
        assert_eq!(authority.requested.load(Ordering::Relaxed), 1);
        for (responses, expected) in [
            ([Some(4), Some(60)], Ok("Bearer 1".to_owned())),
            ([Some(4), None], Ok("Bearer 0".to_owned())),
            ([Some(-1), None], Err("refused".to_owned())),
            ([None, Some(60)], Ok("Bearer 1".to_owned())),
        ] {
            let (_, policy) = authorized(&responses);
            let first = send(&*policy, "https://azure").await;
            assert_eq!(first.is_ok(), responses[0].is_some());
            assert_eq!(send(&*policy, "https://azure").await, expected, "{responses:?}");
        }
    }

    #[tokio::test]
    async fn sends_no_token_without_tls() {
        let (authority, policy) = authorized(&[Some(60)]);
        assert!(send(&*policy, "http://azure").await.unwrap_err().contains("TLS"));
        assert_eq!(authority.requested.load(Ordering::Relaxed), 0);
        assert_eq!(format!("{policy:?}"), r#"Authorized { scope: "scope", .. }"#);
    }

    #[tokio::test]
    async fn who_waits_for_a_token_takes_no_processor() {
        let (_, policy) = authorized(&[None]);
        let polls = Arc::new(AtomicUsize::new(0));
        for _ in 0..5 {
            let policy = Arc::clone(&policy);
            let polls = Arc::clone(&polls);
            tokio::spawn(async move {
                let mut sent = pin!(send(&*policy, "https://azure"));
                poll_fn(|task| {
                    polls.fetch_add(1, Ordering::Relaxed);
                    sent.as_mut().poll(task)
                })
                .await
            });
        }
        sleep(Time::from_millis(100)).await;
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls < 50, "{polls} times, while nobody has answered");
    }
}
