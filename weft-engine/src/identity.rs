//! The versions that Weft announces.

/// The level of Redis that is really supported, for clients that choose features by it.
pub const REDIS_VERSION: &str = "7.2.4";
/// Weft's own version.
pub const WEFT_VERSION: &str = env!("CARGO_PKG_VERSION");
