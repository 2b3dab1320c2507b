//! The stand-in follows the rules of the REST reference. Otherwise tests against it would prove nothing.

use azure_core::http::headers::Headers;
use azure_core::http::{Method, Request, new_http_client};
use serde_json::{Value, json};

use test_support::arm::{Arm, Fault, Naming, Operations, ScaleSet, Verb};

const GROUP: &str = "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets";

struct Reply {
    status: u16,
    headers: Headers,
    body: Value,
}

impl Reply {
    fn header(&self, name: &'static str) -> String {
        self.headers.get_optional_str(&name.into()).unwrap_or_default().to_owned()
    }

    fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

/// A client without rules of its own.
struct Caller<'a> {
    arm: &'a Arm,
    token: String,
}

impl<'a> Caller<'a> {
    async fn with_token(arm: &'a Arm) -> Self {
        let form = "grant_type=client_credentials&client_id=me&client_secret=s%2Bt&scope=all%20of+it";
        let mut request =
            Request::new(format!("{}/tenant/oauth2/v2.0/token", arm.url()).parse().unwrap(), Method::Post);
        request.insert_header("content-type", "application/x-www-form-urlencoded");
        request.set_body(form.to_owned());
        let reply = send(&request).await.unwrap();
        Self { arm, token: reply.body["access_token"].as_str().unwrap().to_owned() }
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        self.try_call(method, path, body).await.unwrap()
    }

    async fn try_call(&self, method: Method, path: &str, body: Option<Value>) -> azure_core::Result<Reply> {
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.arm.url()) };
        let mut request = Request::new(url.parse().unwrap(), method);
        request.insert_header("authorization", format!("Bearer {}", self.token));
        request.insert_header("content-type", "application/json");
        if let Some(body) = body {
            request.set_body(body.to_string());
        }
        send(&request).await
    }

    async fn put(&self, name: &str, fault_domains: i32) -> Reply {
        let body = json!({"location": "westeurope", "properties": {"platformFaultDomainCount": fault_domains}});
        self.call(Method::Put, &format!("{GROUP}/{name}?api-version=2024-03-01"), Some(body)).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.call(Method::Get, path, None).await
    }

    async fn delete(&self, name: &str) -> Reply {
        self.call(Method::Delete, &format!("{GROUP}/{name}?api-version=2024-03-01&forceDeletion=false"), None).await
    }
}

async fn send(request: &Request) -> azure_core::Result<Reply> {
    let response = new_http_client(None).execute_request(request).await?.try_into_raw_response().await?;
    let (status, headers, body) = response.deconstruct();
    Ok(Reply { status: status.into(), headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

#[tokio::test]
async fn nothing_without_token_and_api_version() {
    let arm = Arm::start().unwrap();
    arm.group("sub", "rg");
    let stranger = Caller { arm: &arm, token: "made-up".to_owned() };
    let reply = stranger.get(&format!("{GROUP}?api-version=2024-03-01")).await;
    assert_eq!((reply.status, reply.code()), (401, "InvalidAuthenticationToken"));
    let caller = Caller::with_token(&arm).await;
    assert_eq!(arm.token_requests()[0].scope, "all of it");
    assert_eq!(caller.get(GROUP).await.code(), "MissingApiVersionParameter");
    assert_eq!(caller.get(&format!("{}?api-version=1", GROUP.to_lowercase())).await.status, 200);
    let elsewhere = GROUP.replace("rg", "other");
    let reply = caller.get(&format!("{elsewhere}?api-version=1")).await;
    assert_eq!((reply.status, reply.code()), (404, "ResourceGroupNotFound"));
}

#[tokio::test]
async fn a_put_lasts_until_its_operation_ends() {
    let arm = Arm::start().unwrap();
    let group = arm.group("sub", "rg");
    group.operations(Operations::Polled { times: 2, retry_after: 7 });
    let caller = Caller::with_token(&arm).await;
    let begun = caller.put("vmo-a-AbCd1234", 2).await;
    assert_eq!((begun.status, begun.header("retry-after").as_str()), (201, "7"));
    assert_eq!(begun.body["properties"]["provisioningState"], "Creating");
    assert_eq!(caller.put("vmo-a-AbCd1234", 2).await.status, 409, "one operation at a time");
    let address = begun.header("azure-asyncoperation");
    assert_eq!(caller.get(&address).await.body["status"], "InProgress");
    assert_eq!(caller.get(&address).await.body["status"], "Succeeded");
    let made = caller.get(&begun.body["id"].as_str().map(|id| format!("{id}?api-version=1")).unwrap()).await;
    assert_eq!(made.body["properties"]["provisioningState"], "Succeeded");
    assert_eq!(caller.put("vmo-a-AbCd1234", 2).await.status, 200, "the same again changes nothing");
    assert_eq!(caller.put("vmo-a-AbCd1234", 3).await.code(), "PropertyChangeNotAllowed");
    assert_eq!(caller.put("vmo-b-AbCd1234", 4).await.code(), "InvalidParameter");
    assert_eq!(group.calls().len(), 5, "neither polls nor the read at the end are calls");
}

#[tokio::test]
async fn a_failed_put_reports_its_error_at_its_operation() {
    let arm = Arm::start().unwrap();
    let group = arm.group("sub", "rg");
    group.fail_to_make("QuotaExceeded", "no more");
    let caller = Caller::with_token(&arm).await;
    let begun = caller.put("vmo-a-AbCd1234", 2).await;
    let status = caller.get(&begun.header("azure-asyncoperation")).await.body;
    assert_eq!((&status["status"], &status["error"]["code"]), (&json!("Failed"), &json!("QuotaExceeded")));
    assert_eq!(group.scale_sets()[0].provisioning_state, "Failed");
}

#[tokio::test]
async fn a_delete_is_followed_by_its_location() {
    let arm = Arm::start().unwrap();
    let group = arm.group("sub", "rg");
    group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));
    let caller = Caller::with_token(&arm).await;
    assert_eq!(caller.delete("unknown").await.status, 204);
    group.operations(Operations::Polled { times: 2, retry_after: 1 });
    let begun = caller.delete("VMO-a-AbCd1234").await;
    assert_eq!(begun.status, 202);
    let address = begun.header("location");
    assert_eq!(caller.get(&address).await.status, 202);
    assert_eq!(group.scale_sets()[0].provisioning_state, "Deleting");
    assert_eq!(caller.get(&address).await.status, 200);
    assert!(group.names().is_empty());
}

#[tokio::test]
async fn lists_have_pages() {
    let arm = Arm::start().unwrap();
    let group = arm.group("sub", "rg");
    group.page(2);
    for name in ["a", "b", "c"] {
        group.has(ScaleSet::foreign(name, 1));
    }
    let caller = Caller::with_token(&arm).await;
    let first = caller.get(&format!("{GROUP}?api-version=1")).await.body;
    assert_eq!(first["value"].as_array().unwrap().len(), 2);
    let second = caller.get(first["nextLink"].as_str().unwrap()).await.body;
    assert_eq!((&second["value"][0]["name"], &second["nextLink"]), (&json!("c"), &Value::Null));
    assert_eq!(json!(group.calls()), json!([["List", "rg"]]));
}

#[tokio::test]
async fn faults_come_as_ordered() {
    let arm = Arm::start().unwrap();
    let group = arm.group("sub", "rg");
    group.naming(Naming::Numbered);
    group.fail(Fault::on(Verb::Put).status(429).retry_after(17));
    group.fail(Fault::on(Verb::Delete).of("other").response_lost());
    let caller = Caller::with_token(&arm).await;
    let throttled = caller.put("vmo-a-AbCd1234", 2).await;
    assert_eq!((throttled.status, throttled.header("retry-after").as_str()), (429, "17"));
    assert_eq!(caller.put("vmo-a-AbCd1234", 2).await.body["name"], "vmo-a-00000001");
    assert_eq!(caller.put("vmo-b-AbCd1234", 2).await.body["name"], "vmo-b-00000002");
    group.has(ScaleSet::foreign("other", 1));
    let path = format!("{GROUP}/other?api-version=1");
    assert!(caller.try_call(Method::Delete, &path, None).await.is_err(), "nobody hears of it");
    assert_eq!(group.names(), ["vmo-a-00000001", "vmo-b-00000002"], "but it is done");
}
