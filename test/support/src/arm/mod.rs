//! A stand-in for Azure over real HTTP: the token endpoint and the scale sets of the resource manager (ARM).
//!
//! ```text
//! server       requests and answers, and the handles of tests
//!   ├── tokens         POST /{tenant}/oauth2/v2.0/token
//!   └── scale_sets     GET, PUT, DELETE …/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets[/{name}]
//!         └── operations   what a PUT or DELETE goes on with after its answer
//!   └── galleries      GET …/locations/{location}/communityGalleries/{name}/images[/{image}/versions], and sharedGalleries
//! faults       answers that go wrong on request: status, code, Retry-After, an answer that gets lost
//! calls        what was asked, in order
//! ```
//!
//! A test begins like this:
//!
//! ```text
//! let arm = Arm::start()?;                                     // arm.url() is both ARM and the authority
//! let group = arm.group("sub", "shoot--foo--bar");             // tests keep apart by resource groups
//! group.has(ScaleSet::of_pool("vmo-a-AbCd1234", "a", 3));      // what Azure has at first
//! group.fail(Fault::on(Verb::Put).status(429).retry_after(1)); // once; `.times(n)`, `.always()`
//! group.operations(Operations::Polled { times: 2, retry_after: 0 });
//! …
//! assert_eq!(json!(group.calls()), json!([["CreateOrUpdate", …], ["List", …]]));
//! ```
//!
//! The rules that it keeps, from the REST reference of `Microsoft.Compute` 2024-03-01 and ARM's page on asynchronous
//! operations:
//!
//! * Every request needs `api-version` (else 400 `MissingApiVersionParameter`) and a bearer token that the token endpoint
//!   gave (else 401 `AuthenticationFailed`, `InvalidAuthenticationToken`). Names compare in any case.
//! * An unknown resource group is a 404 `ResourceGroupNotFound`, an unknown scale set a 404 `ResourceNotFound`.
//! * PUT makes (201) or updates (200). While it goes on, the answer has `Azure-AsyncOperation` and `Retry-After`, and the
//!   resource a `provisioningState` that is neither `Succeeded`, `Failed` nor `Canceled`. The operation's address answers
//!   200 with `status`, and with `error` when it failed. The number of fault domains can't be changed (409
//!   `PropertyChangeNotAllowed`) and is at most three (400 `InvalidParameter`).
//! * DELETE answers 204 when there is nothing, 200 when it is done at once, else 202 with `Location` and `Retry-After`.
//!   That address answers 202 until the scale set is gone, then 200.
//! * While an operation goes on, other writes to the scale set are a 409 `Conflict`.
//! * LIST gives pages; `nextLink` is the whole address of the next.
//! * Errors are `{"error": {"code", "message"}}`; those of the token endpoint have `error`, `error_description` and
//!   `error_codes`.
//!
//! Left out: machines in scale sets, what becomes of resources that a failed PUT has begun, quotas (use a [`Fault`]).

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
