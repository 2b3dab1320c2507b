//! A garden with the webhooks, which all tests share.

use anyhow::Result;

use test_support::cluster::{self, ControlPlane};
use test_support::garden;
pub(crate) use test_support::webhooks::{NAMESPACE, Webhooks as Admission};

/// Name of Secret and configurations, where a test does not say another one.
pub(crate) const NAME: &str = "gardener-extension-worker-admission";

/// Starts it for the first test.
pub(crate) async fn shared() -> Result<(&'static ControlPlane, &'static Admission)> {
    static SHARED: tokio::sync::OnceCell<Admission> = tokio::sync::OnceCell::const_new();
    let control_plane = cluster::shared().await?;
    let start = async || {
        garden::install(control_plane).await?;
        let admission = Admission::start(control_plane, "admission", |program| program).await?;
        admission.ready().await?;
        anyhow::Ok(admission)
    };
    let admission = SHARED.get_or_try_init(start).await?;
    admission.process().ensure_running()?;
    Ok((control_plane, admission))
}
