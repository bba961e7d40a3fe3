//! The data that the slow commands work on: string keys, and one large collection of each type.
//!
//! Owns their names and contents: `key:0` and on with values of 32 bytes, and of half as many elements each the hash `bighash`,
//! the sets `s1` and `s2`, which share half of their members, the sorted set `z1` and the list `l1`.

use weft_client::Connection;

use crate::server::fill;

/// So many elements go with one command.
const AT_ONCE: u64 = 100;

/// Makes the data for `count` string keys. Returns what the server could not make: commands that need it will fail and say so.
///
/// # Errors
/// Without the string keys there is nothing to measure with.
pub fn make(connection: &mut Connection, count: u64) -> Result<Vec<String>, String> {
    let words = |words: &[&str]| -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    };
    let value = "x".repeat(32);
    let strings = (0..count).map(|key| words(&["SET", &format!("key:{key}"), &value]));
    fill(connection, strings)?;
    let half = count / 2;
    let mut missing = Vec::new();
    let mut collection = |name: &[&str], element: &dyn Fn(u64) -> Vec<Vec<u8>>| {
        let chunks = (0..half).step_by(AT_ONCE as usize).map(|start| {
            let mut command = words(name);
            command.extend((start..half.min(start + AT_ONCE)).flat_map(element));
            command
        });
        missing.extend(fill(connection, chunks).err());
    };
    collection(&["HSET", "bighash"], &|number| {
        words(&[&format!("field:{number}"), &format!("v{number}")])
    });
    collection(&["SADD", "s1"], &|number| words(&[&format!("m:{number}")]));
    collection(&["SADD", "s2"], &|number| {
        words(&[&format!("m:{}", number + half / 2)])
    });
    collection(&["ZADD", "z1"], &|number| {
        // A prime step spreads the scores.
        let score = number * 7919 % 1_000_003;
        words(&[&score.to_string(), &format!("m:{number}")])
    });
    collection(&["RPUSH", "l1"], &|number| words(&[&format!("e:{number}")]));
    Ok(missing)
}
