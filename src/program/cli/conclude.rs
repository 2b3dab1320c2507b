//! How a command ends: with the exit of its answer, or of its error.

use super::documentation::linked_error;
use super::evidence::Reply;
use super::exit::{Exit, WrongUsage};
use super::terminal::{complain, is_broken_pipe};
use runtime::process::failure_reason::reason;

/// Converts the result of a command to its exit, and prints the inputs that the answer does not cover.
pub(super) fn conclude(result: anyhow::Result<Reply>) -> Exit {
    match result {
        Ok(outcome) => {
            outcome.evidence().problems().for_each(|problem| complain(&linked_error(problem)));
            outcome.exit()
        }
        // A reader such as `head` closes the pipe early, which is not a failure.
        Err(error) if is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            complain(&linked_error(&reason(error.as_ref())));
            if error.is::<WrongUsage>() { Exit::Usage } else { Exit::Failed }
        }
    }
}
