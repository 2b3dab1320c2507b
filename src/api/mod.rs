//! Objects as they are on the wire. No behaviour beyond (de)serialising.

pub mod gardener;
pub mod gotext;
