//! Fuzz target: the machine state that a Worker or a ShootState keeps while its control plane moves.
#![no_main]

use gardener_extension_worker::worker::machine_state::MachineState;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(state) = MachineState::read(text) else { return };
    // What is kept is bounded by what was read.
    let kept = state.machine_sets("namespace").count() + state.machines("namespace").count();
    assert!(kept <= text.len(), "{kept} objects of {} bytes", text.len());
});
