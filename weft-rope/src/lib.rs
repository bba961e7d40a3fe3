//! Counted, chunked byte strings: large arguments, values and replies.
