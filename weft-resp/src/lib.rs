//! The RESP wire protocol: requests in, replies out.
