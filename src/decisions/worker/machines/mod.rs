//! Live machines: which fields of them decisions read, how far a roll is, and the state that a migration restores.

pub mod live_machine;
pub mod machine_objects;
pub mod machine_state;
pub mod node_count;
pub mod progress;
