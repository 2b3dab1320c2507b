//! Default kubelet reservations for Kubernetes' own processes (Gardener's admission plugin `ShootResourceReservation`).

use serde_json::{Value, json};

use super::members::{name, object, pools_mut, text};
use super::{Reservation, ShootError};
use wire::api::gardener::{ProfileMachineType, ProfileSpec};
use wire::api::gotext::json::decode_value;
use wire::api::gotext::quantity::Quantity;

const GI: i64 = 1 << 30;

/// Reserved process IDs, independent of the machine type.
const PROCESS_IDS: &str = "20k";

/// Sets missing reservations in the mode of the landscape. A Shoot with cluster-wide reservations always gets static
/// ones.
pub(super) fn set(shoot: &mut Value, profile: &ProfileSpec, reservation: Reservation) -> Result<(), ShootError> {
    let is_cluster_wide = shoot.pointer("/spec/kubernetes/kubelet/kubeReserved").is_some();
    if reservation == Reservation::Static || is_cluster_wide {
        let kubelet = ["spec", "kubernetes", "kubelet", "kubeReserved"];
        return reserve(shoot, &kubelet, "80m".to_owned(), "1Gi".to_owned());
    }
    for pool in pools_mut(shoot) {
        let machine_type = text(&pool["machine"]["type"]).to_owned();
        let known = profile.machine_types.iter().find(|known| known.name == machine_type);
        let unknown = || ShootError::UnknownMachineType { pool: name(pool).to_owned(), machine_type };
        let (cpu, memory) = known.and_then(of_machine_type).ok_or_else(unknown)?;
        reserve(pool, &["kubernetes", "kubelet", "kubeReserved"], cpu, memory)?;
    }
    Ok(())
}

fn reserve(location: &mut Value, path: &[&str], cpu: String, memory: String) -> Result<(), ShootError> {
    let reserved = object(location, path)?;
    for (resource, amount) in [("cpu", cpu), ("memory", memory), ("pid", PROCESS_IDS.to_owned())] {
        reserved.entry(resource).or_insert(json!(amount));
    }
    Ok(())
}

/// Reserved CPU and memory for a machine type.
fn of_machine_type(machine_type: &ProfileMachineType) -> Option<(String, String)> {
    let [cpu, memory] = [&machine_type.cpu, &machine_type.memory].map(|amount| decode_value::<Quantity>(amount).ok());
    Some((format!("{}m", millicores(&cpu?)), in_largest_unit(bytes(memory?.value_rounded_up()))))
}

/// Reserved CPU in millicores, with a smaller share for each further core.
fn millicores(cpu: &Quantity) -> i64 {
    let begun = cpu.value_rounded_up();
    let whole = if Quantity::from(begun) == *cpu { begun } else { begun - 1 };
    let mut reserved = if begun > 0 { 60 } else { 0 };
    reserved += if begun > 1 { 10 } else { 0 };
    reserved += (whole.min(4) - 2).max(0) * 5;
    reserved + (whole - 4).max(0) * 5 / 2
}

/// Reserved memory in bytes, with a smaller share for each further part.
fn bytes(memory: i64) -> i64 {
    if memory < GI {
        return 255 << 20;
    }
    let part = |from: i64, to: i64| (memory.min(to * GI) - from * GI).max(0);
    let beyond = (memory - 128 * GI).max(0);
    part(0, 4) / 4 + part(4, 8) / 5 + part(8, 16) / 10 + part(16, 128) / 100 * 6 + beyond / 100 * 2
}

/// Formats a binary quantity like Go, with the largest unit that divides it.
fn in_largest_unit(bytes: i64) -> String {
    let units = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"].iter().zip((1..=6).rev());
    let mut fitting = units.filter(|(_, power)| bytes != 0 && bytes.trailing_zeros() >= 10 * power);
    fitting.next().map_or_else(|| bytes.to_string(), |(unit, power)| format!("{}{unit}", bytes >> (10 * power)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_depend_on_machine_size() {
        let cpu = |text: &str| millicores(&Quantity::parse(text).unwrap());
        assert_eq!(
            ["0", "500m", "1", "1500m", "2", "2500m", "3", "4", "5", "96"].map(cpu),
            [0, 60, 60, 70, 70, 70, 75, 80, 82, 310]
        );
        let memory = |gi: i64| in_largest_unit(bytes(gi * GI));
        assert_eq!(in_largest_unit(bytes(GI - 1)), "255Mi");
        assert_eq!([1, 4, 8, 16].map(memory), ["256Mi", "1Gi", "1932735283", "2791728742"]);
        assert_eq!(memory(672), "21689584838");
    }
}
