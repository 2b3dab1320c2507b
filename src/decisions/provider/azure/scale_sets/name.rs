//! Names of scale sets: `vmo-<pool>-<8 characters>`.
//!
//! The Go extension generates random characters and records the name only after Azure's response. If it crashes in
//! between, it leaks the scale set and creates another one, which rolls the nodes. Here the characters are derived from
//! the reason for the new scale set, so every attempt requests the same name. They are used only for new scale sets;
//! recorded names stay.

use sha2::{Digest, Sha256};

/// Characters of the name suffix.
const CHARACTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Length of the name suffix.
const LENGTH: usize = 8;

/// The reason for a new scale set.
#[derive(Clone, Copy, Debug)]
pub struct NameSeed<'a> {
    /// Namespace of the Worker.
    pub namespace: &'a str,
    /// Resource group of the shoot.
    pub resource_group: &'a str,
    /// Name of the pool.
    pub pool: &'a str,
    /// Target number of fault domains.
    pub fault_domains: i32,
    /// The scale set to replace, because it no longer exists or has another number of fault domains.
    pub predecessor: Option<&'a str>,
}

impl NameSeed<'_> {
    /// Derives the name. The same seed always has the same name, and different seeds have different names.
    #[must_use]
    pub fn name(&self) -> String {
        let fault_domains = self.fault_domains.to_string();
        let parts = [self.namespace, self.resource_group, self.pool, &fault_domains];
        let mut digest = Sha256::new();
        for part in parts.into_iter().chain(self.predecessor) {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let characters = digest.finalize().iter().take(LENGTH).map(|byte| character(*byte)).collect::<String>();
        format!("vmo-{}-{characters}", self.pool)
    }
}

fn character(byte: u8) -> char {
    CHARACTERS[usize::from(byte) % CHARACTERS.len()].into()
}

/// Whether a scale set of that name may belong to the pool.
#[must_use]
pub fn is_name_of_pool(name: &str, pool: &str) -> bool {
    let rest =
        name.strip_prefix("vmo-").and_then(|rest| rest.strip_prefix(pool)).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| rest.len() == LENGTH && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: NameSeed<'_> =
        NameSeed { namespace: "shoot--p--s", resource_group: "rg", pool: "a", fault_domains: 3, predecessor: None };

    #[test]
    fn retries_keep_the_name_and_new_needs_change_it() {
        assert_eq!(SEED.name(), SEED.name());
        let others = [
            NameSeed { namespace: "shoot--p--t", ..SEED },
            NameSeed { resource_group: "rh", ..SEED },
            NameSeed { pool: "b", ..SEED },
            NameSeed { fault_domains: 2, ..SEED },
            NameSeed { predecessor: Some("vmo-a-AbCd1234"), ..SEED },
            NameSeed { predecessor: Some("vmo-a-AbCd1235"), ..SEED },
            NameSeed { predecessor: Some(""), ..SEED },
            NameSeed { namespace: "shoot--p--sr", resource_group: "g", ..SEED },
        ];
        let suffix = |seed: &NameSeed<'_>| seed.name().rsplit_once('-').unwrap().1.to_owned();
        let mut suffixes: Vec<String> = others.iter().chain([&SEED]).map(suffix).collect();
        suffixes.sort();
        suffixes.dedup();
        assert_eq!(suffixes.len(), others.len() + 1);
    }

    #[test]
    fn a_name_belongs_to_exactly_one_pool() {
        assert!(is_name_of_pool(&SEED.name(), "a"));
        for (name, pool) in [
            ("vmo-a2-ZZZZZZZZ", "a"),
            ("vmo-a-b-ZZZZZZZZ", "a"),
            ("vmo-ab-ZZZZZZZZ", "b"),
            ("vmo-a-ZZZZZZZ", "a"),
            ("vmo-a-ZZZZ_ZZZ", "a"),
            ("vmo-a-\u{df}\u{df}\u{df}\u{df}", "a"),
            ("a-ZZZZZZZZ", "a"),
        ] {
            assert!(!is_name_of_pool(name, pool), "{name}");
        }
    }
}
