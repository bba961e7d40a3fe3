//! Values and the text forms of numbers: what a value is, apart from where it is kept.
//!
//! Owns the two number syntaxes that clients see (integers and doubles, and the 80-bit extended
//! values of `INCRBYFLOAT`), glob patterns, the longest common subsequence and the encodings of
//! strings. It knows no keys, clocks, latches or sockets; everything here is a pure function of its
//! arguments or a structure without hidden state.
#![forbid(unsafe_code)]

pub mod bitmap;
pub mod collection;
pub mod cow_vec;
pub mod geo;
pub mod glob;
pub mod hash;
pub mod hyperloglog;
pub mod lcs;
pub mod list;
pub mod long_double;
pub mod members;
pub mod number;
pub mod packed;
mod rounding;
pub mod set;
pub mod slab;
pub mod sorted_set;
pub mod stream;
pub mod string_value;
pub mod table;
pub mod tree;
