//! A garden refuses exactly the documents that `lint` reports as refused.

use anyhow::{Result, ensure};
use gardener_extension_worker::api::gotext::yaml::documents;
use serde_json::Value;
use test_support::broken::{cases, put};

use crate::stage::{self, Refusals, Verdict, lint, verdict};

/// Describes a disagreement between `lint` and the gardens about a document.
fn disagreements(what: &str, lint: &Refusals, [bare, hooked]: [&Verdict; 2]) -> Option<String> {
    let refused_bare = lint.by_gardener || lint.without_webhooks;
    let refused_hooked = lint.by_gardener || lint.by_provider;
    let agrees = bare.is_refused() == refused_bare && hooked.is_refused() == refused_hooked;
    (!agrees).then(|| {
        let [bare, hooked] = [bare.text(), hooked.text()];
        format!("## {what}\nwithout webhooks: {bare}\nwith webhooks: {hooked}\nlint: {}\n", lint.text.trim_end())
    })
}

/// Validates a document in both gardens and compares their verdicts with the findings of `lint`.
async fn compared(what: &str, document: &Value, arguments: &[&str]) -> Result<Option<String>> {
    let [bare, hooked] = [stage::bare().await?, stage::with_webhooks().await?];
    let verdicts = [verdict(&bare.client().await?, document).await?, verdict(&hooked.client().await?, document).await?];
    let refusals = lint(document, arguments).await?;
    Ok(disagreements(what, &refusals, [&verdicts[0], &verdicts[1]]))
}

#[tokio::test]
async fn lint_and_a_garden_deny_the_same_profiles() -> Result<()> {
    let profile = documents(&std::fs::read_to_string("example/cloudprofiles/azure.yaml")?)?.remove(0);
    let mut wrong = Vec::new();
    let tables = [include_str!("../cli/broken/profiles.txt"), include_str!("profiles.txt")];
    for case in tables.into_iter().flat_map(cases) {
        let mut profile = profile.clone();
        put(&mut profile, &format!("/{}", case.location), case.value.clone());
        wrong.extend(compared(case.line, &profile, &[]).await?);
    }
    ensure!(wrong.is_empty(), "{} disagreements:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
