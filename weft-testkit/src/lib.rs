//! Oracles, doors and differential tests.
