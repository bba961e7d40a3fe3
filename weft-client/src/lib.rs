//! A blocking RESP client for tools and tests.
