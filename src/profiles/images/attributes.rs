//! Attributes of an image besides the facts that distinguish flavors. Only filters use them.

use std::sync::Arc;

use wire::api::gardener::Capabilities;

/// Attributes that differ from image to image. A hundred thousand images share the rest of their attributes.
const UNIQUE: [&str; 8] = [
    "blockDeviceMapping.snapshotId",
    "description",
    "imageLocation",
    "lastLaunchedTime",
    "sourceImageId",
    "sourceInstanceId",
    "stateReasonMessage",
    "stateTransitionReason",
];

/// Attributes with the names and the spelling of the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub(super) shared: Arc<Capabilities>,
    unique: Option<Box<Capabilities>>,
}

impl From<Capabilities> for Attributes {
    fn from(all: Capabilities) -> Self {
        let (unique, shared): (Vec<_>, Vec<_>) =
            all.0.into_iter().partition(|(name, _)| UNIQUE.contains(&name.as_str()));
        let unique = Capabilities(unique.into_iter().collect());
        Self {
            shared: Arc::new(Capabilities(shared.into_iter().collect())),
            unique: (!unique.is_empty()).then(|| Box::new(unique)),
        }
    }
}

impl Attributes {
    /// The values of an attribute.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<&[String]> {
        self.shared.values(name).or_else(|| self.unique.as_ref()?.values(name))
    }

    /// All attributes in one map.
    #[must_use]
    pub fn all(&self) -> Capabilities {
        let unique = self.unique.iter().flat_map(|unique| &unique.0);
        Capabilities(self.shared.0.iter().chain(unique).map(|(name, values)| (name.clone(), values.clone())).collect())
    }

    /// Adds attributes that are missing here.
    pub(super) fn fill(&mut self, other: &Self) {
        let unique = other.unique.iter().flat_map(|unique| &unique.0);
        for (name, values) in other.shared.0.iter().chain(unique) {
            if self.values(name).is_some() {
                continue;
            }
            let map = match UNIQUE.contains(&name.as_str()) {
                true => self.unique.get_or_insert_default(),
                false => Arc::make_mut(&mut self.shared),
            };
            map.0.insert(name.clone(), values.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_attributes_are_kept_apart() {
        let all = Capabilities::from_iter([("enaSupport", ["true"]), ("imageLocation", ["a/b"])]);
        let attributes = Attributes::from(all.clone());
        assert_eq!(*attributes.shared, Capabilities::from_iter([("enaSupport", ["true"])]));
        assert_eq!(attributes.values("imageLocation"), Some(&["a/b".to_owned()][..]));
        assert_eq!(attributes.all(), all);
        let mut filled = Attributes::from(Capabilities::from_iter([("imageLocation", ["c/d"])]));
        filled.fill(&attributes);
        assert_eq!(filled.values("imageLocation"), Some(&["c/d".to_owned()][..]), "it had one");
        assert_eq!(filled.values("enaSupport"), Some(&["true".to_owned()][..]));
    }
}
