//! GEP-33 machine capabilities.
