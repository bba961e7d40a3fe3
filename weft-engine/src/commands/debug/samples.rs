//! DEBUG PROTOCOL: a sample of every type of reply, for those who write clients.

use weft_resp::{Protocol, Writer};

use super::is;
use crate::error::CommandError;

/// Replies with a value of the named type, for testing clients.
#[allow(
    clippy::approx_constant,
    reason = "these digits are what test suites expect, not pi"
)]
pub(super) fn reply_sample(reply: &mut Writer<'_>, name: &[u8]) -> Result<(), CommandError> {
    match name {
        _ if is(name, "STRING") => reply.bulk(b"Hello World"),
        _ if is(name, "INTEGER") => reply.integer(12345),
        _ if is(name, "DOUBLE") => reply.double(3.141),
        _ if is(name, "NULL") => reply.null(),
        _ if is(name, "ARRAY") => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        _ if is(name, "SET") => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        _ if is(name, "MAP") => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        _ if is(name, "ATTRIB") => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        _ if is(name, "PUSH") => {
            if reply.protocol == Protocol::Resp2 {
                return Err(CommandError::Text(
                    "ERR RESP2 is not supported by this command",
                ));
            }
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        _ if is(name, "VERBATIM") => reply.verbatim("txt", b"This is a verbatim\nstring"),
        _ if is(name, "TRUE") => reply.boolean(true),
        _ if is(name, "FALSE") => reply.boolean(false),
        _ if is(name, "BIGNUM") => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(CommandError::Text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}
