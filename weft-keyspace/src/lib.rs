//! Shards, latches, arenas, tables, entries and expiry.
