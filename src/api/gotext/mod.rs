//! Text as Go prints and parses it.
