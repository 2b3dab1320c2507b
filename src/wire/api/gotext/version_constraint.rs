//! Version constraints, parsed like `github.com/Masterminds/semver` v3: `>= 1.30, < 1.33 || ~1.34`.

use super::version::Version;

/// A constraint on versions: all conditions of at least one alternative must hold.
#[derive(Clone, Debug)]
pub struct VersionConstraint {
    alternatives: Vec<Vec<Condition>>,
}

/// A text that is not a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("improper constraint: {0:?}")]
pub struct ConstraintError(String);

/// An operator with its version.
#[derive(Clone, Debug)]
struct Condition {
    operator: Operator,
    version: Version,
    /// The first number of the version that is missing or a wildcard.
    open_from: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Major,
    Minor,
    Patch,
    Nothing,
}

/// Operators, each before those that are its prefix.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

impl VersionConstraint {
    /// Parses a constraint.
    ///
    /// # Errors
    /// If the Go library rejects the text.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        let error = || ConstraintError(text.to_owned());
        let alternatives = text.split("||").map(|alternative| conditions(alternative).ok_or_else(error));
        Ok(Self { alternatives: alternatives.collect::<Result<_, _>>()? })
    }

    /// Whether the constraint allows a version. A prerelease is allowed only if a condition has a prerelease itself.
    #[must_use]
    pub fn allows(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|conditions| conditions.iter().all(|condition| condition.holds(version)))
    }
}

/// Parses conditions separated by spaces or commas, or a range of two versions around ` - `.
fn conditions(text: &str) -> Option<Vec<Condition>> {
    let text = text.trim();
    if let Some((low, high)) = text.split_once(" - ") {
        let low = format!(">={}", low.trim());
        let high = format!("<={}", high.trim());
        return Some(vec![condition(&mut low.as_str())?, condition(&mut high.as_str())?]);
    }
    let mut rest = text;
    let mut conditions = vec![condition(&mut rest)?];
    while !rest.is_empty() {
        let trimmed = rest.trim_start();
        let after = trimmed.strip_prefix(',').unwrap_or(trimmed);
        if after.len() == rest.len() {
            return None;
        }
        rest = after.trim_start();
        conditions.push(condition(&mut rest)?);
    }
    Some(conditions)
}

/// Parses one condition and removes it from the front.
fn condition(rest: &mut &str) -> Option<Condition> {
    let written = OPERATORS.iter().find_map(|(text, operator)| Some((rest.strip_prefix(text)?, *operator)));
    let (after, written) = written.map_or((*rest, None), |(after, operator)| (after, Some(operator)));
    let after = after.trim_start();
    let end = after.find(|character: char| character.is_whitespace() || character == ',').unwrap_or(after.len());
    let (version, after) = after.split_at_checked(end)?;
    let (version, open_from) = partial_version(version)?;
    *rest = after;
    let operator = match written {
        Some(Operator::Equal) | None if open_from < Part::Nothing => Operator::Tilde,
        written => written.unwrap_or(Operator::Equal),
    };
    Some(Condition { operator, version, open_from })
}

/// Parses a version with missing numbers or wildcards, which are zero in the result.
fn partial_version(text: &str) -> Option<(Version, Part)> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, suffix) = text.split_at_checked(end)?;
    let numbers: Vec<&str> = numbers.split('.').collect();
    let is_open = |part: Option<&&str>| part.is_none_or(|part| ["x", "X", "*"].contains(part));
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() > 3 || !numbers.iter().all(|part| is_number(part) || is_open(Some(part))) {
        return None;
    }
    let open =
        [Part::Major, Part::Minor, Part::Patch].into_iter().zip(0..).find(|(_, index)| is_open(numbers.get(*index)));
    let open_from = open.map_or(Part::Nothing, |(part, _)| part);
    let known = numbers.get(..open_from as usize)?;
    let zeros = std::iter::repeat_n("0", 3_usize.saturating_sub(known.len()));
    let complete: Vec<&str> = known.iter().copied().chain(zeros).collect();
    let version = Version::parse(&format!("{}{suffix}", complete.join("."))).ok()?;
    Some((version, open_from))
}

impl Condition {
    fn holds(&self, version: &Version) -> bool {
        let target = &self.version;
        let open_from = self.open_from;
        if !version.prerelease.is_empty() && target.prerelease.is_empty() {
            return false;
        }
        let same_major = version.major == target.major;
        let same_minor = same_major && version.minor == target.minor;
        match self.operator {
            Operator::Equal => version == target,
            Operator::NotEqual => match open_from {
                Part::Major => false,
                Part::Minor => !same_major,
                Part::Patch => !same_minor,
                Part::Nothing => version != target,
            },
            Operator::Greater => match open_from {
                Part::Major | Part::Nothing => version > target,
                Part::Minor => version.major > target.major,
                Part::Patch => (version.major, version.minor) > (target.major, target.minor),
            },
            Operator::Less => version < target,
            Operator::GreaterOrEqual => version >= target,
            Operator::LessOrEqual => match open_from {
                Part::Major | Part::Nothing => version <= target,
                Part::Minor => version.major <= target.major,
                Part::Patch => (version.major, version.minor) <= (target.major, target.minor),
            },
            Operator::Tilde => {
                // Only an explicit `~0.0.0` means `>=0.0.0`.
                let is_zero = open_from == Part::Nothing && target == Version::ZERO;
                let all = open_from == Part::Major || is_zero;
                version >= target && (all || same_minor || (same_major && open_from == Part::Minor))
            }
            Operator::Caret => version >= target && self.caret(version),
        }
    }

    /// The first number that is not zero must be equal.
    fn caret(&self, version: &Version) -> bool {
        let target = &self.version;
        if self.open_from == Part::Major {
            return true;
        }
        if target.major > 0 || self.open_from == Part::Minor {
            return version.major == target.major;
        }
        if target.minor > 0 || self.open_from == Part::Patch {
            return (version.major, version.minor) == (0, target.minor);
        }
        (version.major, version.minor, version.patch) == (0, 0, target.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(constraint: &str, version: &str) -> bool {
        VersionConstraint::parse(constraint).unwrap().allows(&Version::parse(version).unwrap())
    }

    #[test]
    fn conditions_hold_as_in_the_go_library() {
        for (constraint, allowed, refused) in [
            ("1.30.1", &["1.30.1"][..], &["1.30.2"][..]),
            (">= 1.30, < 1.33", &["1.30.0", "1.32.9"], &["1.29.9", "1.33.0", "1.31.0-rc.1"]),
            (">=1.30 <1.33", &["1.30.0"], &["1.33.0"]),
            ("< 1.30 || > 1.32", &["1.29.0", "1.33.0"], &["1.31.0", "1.32.5"]),
            ("~1.2", &["1.2.0", "1.2.9"], &["1.3.0", "1.1.9"]),
            ("~1", &["1.9.0"], &["2.0.0"]),
            ("^1.2", &["1.2.0", "1.9.0"], &["2.0.0", "1.1.0"]),
            ("^0.2.3", &["0.2.9"], &["0.3.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            ("1.x", &["1.0.0", "1.9.9"], &["2.0.0"]),
            ("*", &["0.0.0", "9.9.9"], &["1.0.0-rc.1"]),
            ("!= 1.x", &["2.0.0"], &["1.5.0"]),
            ("<= 1.30", &["1.30.9"], &["1.31.0"]),
            ("1.2 - 1.4.5", &["1.2.0", "1.4.5"], &["1.4.6"]),
            (">= 1.30.0-0", &["1.31.0-rc.1", "1.30.0"], &["1.29.0"]),
            ("=> v1.30", &["1.30.0"], &["1.29.0"]),
        ] {
            for version in allowed {
                assert!(allows(constraint, version), "{constraint} allows {version}");
            }
            for version in refused {
                assert!(!allows(constraint, version), "{constraint} refuses {version}");
            }
        }
    }

    #[test]
    fn rejects_invalid_constraints() {
        for text in ["", "bad constraint", ">", ">= 1.2.3.4", "1.2,", ">>1", "1.2 ||", "=1.2=3", "ä", ", 1.2"] {
            assert!(VersionConstraint::parse(text).is_err(), "{text:?}");
        }
    }
}
