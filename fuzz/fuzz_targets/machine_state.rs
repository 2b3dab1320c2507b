//! Fuzz target: the machine state that a Worker or a ShootState keeps while its control plane moves.
#![no_main]

use gardener_extension_worker::worker::machines::machine_state::MachineState;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(state) = MachineState::read(text) else { return };
    // If a state can be read, all of its objects can be created.
    for name in ["", "a", "shoot--p--s-a-z1"] {
        let Some(kept) = state.of_deployment(name) else { continue };
        for document in kept.machine_sets("namespace").chain(kept.machines("namespace")) {
            document.expect("it was read before");
        }
    }
});
