//! A garden with the webhooks, which all tests share.

use anyhow::Result;

use test_support::cluster::{self, ControlPlane};
use test_support::garden;
pub(crate) use test_support::webhooks::{NAMESPACE, Webhooks as Admission};

/// Name of the Secret and the webhook configurations unless a test sets another one.
pub(crate) const NAME: &str = "gardener-extension-worker-admission";

/// Returns the shared webhooks; the first call starts them.
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
