//! A fake Azure over real HTTP: the token endpoint and the scale sets of the resource manager (ARM).
//!
//! ```text
//! server       requests, responses, and test handles
//!   ├── tokens         POST /{tenant}/oauth2/v2.0/token
//!   └── scale_sets     GET, PUT, DELETE …/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets[/{name}]
//!         └── operations   long-running parts of a PUT or DELETE
//!   └── galleries      GET …/locations/{location}/communityGalleries/{name}/images[/{image}/versions], and sharedGalleries
//! faults       injected faults: status, code, Retry-After, lost responses
//! calls        recorded calls, in order
//! ```
//!
//! Example:
//!
//! ```text
//! let arm = Arm::start()?;                                     // arm.url() is both ARM and the authority
//! let group = arm.group("sub", "shoot--foo--bar");             // a resource group isolates a test
//! group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));      // initial state
//! group.fail(Fault::on(Verb::Put).status(429).retry_after(1)); // once; `.times(n)`, `.always()`
//! group.operations(Operations::Polled { times: 2, retry_after: 0 });
//! …
//! assert_eq!(json!(group.calls()), json!([["CreateOrUpdate", …], ["List", …]]));
//! ```
//!
//! It follows the REST reference of `Microsoft.Compute` 2024-03-01 and ARM's page on asynchronous operations:
//!
//! * Every request needs `api-version` (else 400 `MissingApiVersionParameter`) and a bearer token from the token
//!   endpoint (else 401 `AuthenticationFailed`, `InvalidAuthenticationToken`). Names are case-insensitive.
//! * An unknown resource group is a 404 `ResourceGroupNotFound`, an unknown scale set a 404 `ResourceNotFound`.
//! * PUT creates (201) or updates (200). While the operation is running, the response has `Azure-AsyncOperation` and
//!   `Retry-After`, and the resource has a `provisioningState` other than `Succeeded`, `Failed` or `Canceled`. The
//!   operation's URL returns 200 with `status`, and with `error` if it failed. The number of fault domains is immutable
//!   (409 `PropertyChangeNotAllowed`) and at most three (400 `InvalidParameter`).
//! * DELETE returns 204 if there is nothing to delete, 200 if it completes immediately, else 202 with `Location` and
//!   `Retry-After`. That URL returns 202 until the scale set is deleted, then 200.
//! * While an operation is running, other writes to the scale set are a 409 `Conflict`.
//! * LIST is paged; `nextLink` is the full URL of the next page.
//! * Errors are `{"error": {"code", "message"}}`; those of the token endpoint have `error`, `error_description` and
//!   `error_codes`.
//!
//! Not covered: machines in scale sets, resources of a failed PUT, quotas (use a [`Fault`]).

mod calls;
mod faults;
mod galleries;
mod operations;
mod scale_sets;
mod server;
mod tokens;

pub use calls::{Call, Verb};
pub use faults::Fault;
pub use galleries::Gallery;
pub use operations::Operations;
pub use scale_sets::{Naming, ScaleSet};
pub use server::{Arm, Group};
pub use tokens::{Proof, TokenRequest};
