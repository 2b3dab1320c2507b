//! Sizes of volumes.

use super::PoolProblem;
use crate::pool::volumes::size_in_gib;

/// Parses the volume size at a path within the pool, in GiB.
///
/// # Errors
/// If the text does not start with a number, or the number is too large.
pub(super) fn gib(path: &str, size: &str) -> Result<i64, PoolProblem> {
    let detail = || format!("{size:?} does not start with a number of GiB");
    size_in_gib(size).ok_or_else(|| PoolProblem::field(path, detail()))
}
