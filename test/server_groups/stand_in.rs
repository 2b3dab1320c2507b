//! A stand-in for Keystone and Nova: server groups in memory, and calls that fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use serde_json::{Value, json};

/// What it has, and what it was asked.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) groups: Vec<Value>,
    /// Method and path of each call, without the address.
    pub(crate) calls: Vec<String>,
    /// The last call for a token.
    pub(crate) identity: Value,
    /// `POST` and so on: how many such calls of Nova, or of Keystone as `tokens`, fail with that status and body.
    pub(crate) fails: Vec<(&'static str, u32, u16, &'static str)>,
    /// How many groups a page has.
    pub(crate) page: usize,
    /// How long each answer takes.
    pub(crate) delay: Duration,
    tokens: u32,
    made: u32,
}

#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) url: String,
}

impl StandIn {
    /// One without any group.
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { page: 1000, ..State::default() }));
        let stand_in = Self { state, url };
        let asked = stand_in.clone();
        let router = Router::new().fallback(move |request| answer(asked.clone(), request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        stand_in
    }

    /// Changes what it has.
    pub(crate) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// The calls since this was asked before.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    /// The names of all groups.
    pub(crate) fn names(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.groups.iter().map(|group| group["name"].as_str().unwrap().to_owned()).collect()
    }
}

async fn answer(stand_in: StandIn, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let delay = stand_in.state.lock().unwrap().delay;
    tokio::time::sleep(delay).await;
    let state = &mut *stand_in.state.lock().unwrap();
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let version = header("openstack-api-version").map(|version| format!(" ({version})")).unwrap_or_default();
    let of_nova = path.strip_prefix("/compute/v2.1/os-server-groups");
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    state.calls.push(format!("{method} {}{query}{version}", of_nova.unwrap_or("tokens")));
    let kind = if of_nova.is_some() { method } else { "tokens" };
    if let Some((_, times, status, text)) = state.fails.iter_mut().find(|(of, times, ..)| *of == kind && *times > 0) {
        *times -= 1;
        return respond(*status, None, text);
    }
    let Some(rest) = of_nova else {
        assert_eq!((method, path), ("POST", "/identity/v3/auth/tokens"));
        state.identity = body;
        state.tokens += 1;
        let endpoint = |interface: &str, region: &str, path: &str| json!({"interface": interface, "region": region, "url": format!("{}/{path}", stand_in.url)});
        let endpoints = [
            endpoint("admin", "region-1", "no"),
            endpoint("public", "other", "no"),
            endpoint("public", "region-1", "compute/v2.1"),
        ];
        let catalog = json!([{"type": "volumev3", "endpoints": []}, {"type": "compute", "endpoints": endpoints}]);
        let token = format!("token-{}", state.tokens);
        return respond(201, Some(&token), &json!({"token": {"catalog": catalog}}).to_string());
    };
    if header("x-auth-token") != Some(format!("token-{}", state.tokens)) {
        return respond(401, None, r#"{"error":{"code":401,"message":"expired"}}"#);
    }
    let place = state.groups.iter().position(|group| format!("/{}", group["id"].as_str().unwrap()) == rest);
    match (method, rest, place) {
        ("GET", "", _) => {
            let offset: usize = query.strip_prefix("?offset=").map_or(0, |offset| offset.parse().unwrap());
            let page: Vec<&Value> = state.groups.iter().skip(offset).take(state.page).collect();
            respond(200, None, &json!({ "server_groups": page }).to_string())
        }
        ("POST", "", _) => {
            state.made += 1;
            let mut group = body["server_group"].clone();
            group["id"] = json!(format!("made-{}", state.made));
            state.groups.push(group.clone());
            respond(200, None, &json!({ "server_group": group }).to_string())
        }
        ("GET", _, Some(place)) => respond(200, None, &json!({"server_group": state.groups[place]}).to_string()),
        ("DELETE", _, Some(place)) => {
            state.groups.remove(place);
            respond(204, None, "")
        }
        _ => respond(404, None, r#"{"itemNotFound":{"code":404,"message":"no such group"}}"#),
    }
}

fn respond(status: u16, token: Option<&str>, text: &str) -> Response<Body> {
    let mut response = Response::builder().status(status);
    if let Some(token) = token {
        response = response.header("x-subject-token", token);
    }
    response.body(Body::from(text.to_owned())).unwrap()
}
