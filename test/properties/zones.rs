//! Numbers of a pool spread over its zones (docs/contract.md#numbers-per-zone). The test tries every combination: one
//! to six zones, 0 to 20 machines, numbers 0 to 20, percentages 0 to 200.

use gardener_extension_worker::pool::zones::{ZonePosition, distribute, distribute_int_or_percentage};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

const ZONES: std::ops::RangeInclusive<u32> = 1..=6;
const SIZES: std::ops::RangeInclusive<i32> = 0..=20;
const PERCENTAGES: std::ops::RangeInclusive<i32> = 0..=200;

fn positions(count: u32) -> impl Iterator<Item = ZonePosition> {
    (0..count).map(move |index| ZonePosition { index, count })
}

fn shares(total: i32, count: u32) -> Vec<i32> {
    positions(count).map(|zone| distribute(total, zone)).collect()
}

/// The percentages of all zones as numbers.
fn scaled(percentage: i32, total: i32, count: u32) -> Vec<i32> {
    let value = IntOrString::String(format!("{percentage}%"));
    positions(count)
        .map(|zone| match distribute_int_or_percentage(&value, total, zone) {
            Ok(IntOrString::String(text)) => text.strip_suffix('%').unwrap().parse().unwrap(),
            other => panic!("{percentage}% of {total}: {other:?} is no percentage"),
        })
        .collect()
}

fn each_percentage(check: impl Fn(u32, i32, i32, &[i32], &[i32])) {
    for count in ZONES {
        for total in SIZES {
            for percentage in PERCENTAGES {
                check(count, total, percentage, &shares(total, count), &scaled(percentage, total, count));
            }
        }
    }
}

#[test]
fn shares_add_up_and_the_first_zones_get_the_remainder() {
    for count in ZONES {
        for total in SIZES {
            let shares = shares(total, count);
            let zones = count as i32;
            assert_eq!(shares.iter().sum::<i32>(), total, "{total} over {count}");
            let (first, others) = shares.split_at((total % zones) as usize);
            assert!(first.iter().all(|share| *share == total / zones + 1), "{total} over {count}: {shares:?}");
            assert!(others.iter().all(|share| *share == total / zones), "{total} over {count}: {shares:?}");
        }
    }
}

#[test]
fn more_machines_never_mean_fewer_in_a_zone() {
    for count in ZONES {
        for zone in positions(count) {
            assert!(SIZES.map(|total| distribute(total, zone)).is_sorted(), "{zone:?}");
        }
    }
}

#[test]
fn a_minimum_below_the_maximum_stays_below_it_in_every_zone() {
    for count in ZONES {
        for maximum in SIZES {
            for minimum in 0..=maximum {
                for zone in positions(count) {
                    assert!(distribute(minimum, zone) <= distribute(maximum, zone), "{minimum} {maximum} {zone:?}");
                }
            }
        }
    }
}

#[test]
fn a_number_is_spread_like_machines_whatever_the_total() {
    for count in ZONES {
        for total in SIZES {
            for number in SIZES {
                for zone in positions(count) {
                    assert_eq!(
                        distribute_int_or_percentage(&IntOrString::Int(number), total, zone),
                        Ok(IntOrString::Int(distribute(number, zone)))
                    );
                }
            }
        }
    }
}

#[test]
fn a_percentage_of_an_evenly_divided_total_stays() {
    each_percentage(|count, total, percentage, _, scaled| {
        if total % count as i32 == 0 {
            assert!(
                scaled.iter().all(|value| *value == percentage),
                "{percentage}% of {total} over {count}: {scaled:?}"
            );
        }
    });
}

/// `share / (total / count) × percentage`, rounded up. If that is a whole number, floating-point arithmetic may return
/// one more.
#[test]
fn a_scaled_percentage_is_the_exact_one_rounded_up() {
    each_percentage(|count, total, percentage, shares, scaled| {
        if total % count as i32 == 0 {
            return;
        }
        for (share, value) in shares.iter().zip(scaled) {
            let exact = count as i32 * share * percentage;
            let above = value - (exact + total - 1) / total;
            let is_whole = exact % total == 0;
            assert!(
                above == 0 || is_whole && above == 1,
                "{percentage}% of {total} over {count}: {value}% for a share of {share}"
            );
        }
    });
}

#[test]
fn zones_with_more_machines_get_no_smaller_percentage_and_zones_without_none() {
    each_percentage(|count, total, percentage, shares, scaled| {
        assert!(scaled.is_sorted_by(|left, right| left >= right), "{percentage}% of {total} over {count}: {scaled:?}");
        for (share, value) in shares.iter().zip(scaled) {
            let is_spread_evenly = total % count as i32 == 0;
            let may_move = percentage > 0 && (*share > 0 || is_spread_evenly);
            assert_eq!(*value > 0, may_move, "{percentage}% of {total} over {count}: {value}% for a share of {share}");
        }
    });
}

/// Over all zones, a percentage allows at least as many machines as for the whole pool.
#[test]
fn no_machine_of_the_allowance_is_lost() {
    each_percentage(|count, total, percentage, shares, scaled| {
        let allowed: i32 = shares.iter().zip(scaled).map(|(share, value)| share * value).sum();
        assert!(allowed >= total * percentage, "{percentage}% of {total} over {count}: {scaled:?}");
    });
}

#[test]
fn any_number_of_zones_and_machines_has_a_share() {
    for total in [i32::MIN, -1, 0, 1, i32::MAX] {
        for count in [0, 1, 2, 3, u32::MAX] {
            for index in [0, 1, count.saturating_sub(1)] {
                let zone = ZonePosition { index, count };
                let _ = distribute(total, zone);
                for percentage in [i64::MIN, -1, 0, 1, i64::MAX] {
                    let value = IntOrString::String(format!("{percentage}%"));
                    assert!(distribute_int_or_percentage(&value, total, zone).is_ok(), "{total} {zone:?}");
                }
            }
        }
    }
}
