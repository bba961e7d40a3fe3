//! Requests onto the wire: for effects, the append-only file, and clients.
//!
//! Owns the multibulk encoding. Does not know commands.

use weft_rope::Rope;

use crate::args::Args;
use crate::writer::header;

/// Encodes commands as multibulks at the end of a vector.
#[derive(Debug)]
pub struct RequestWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> RequestWriter<'a> {
    /// A writer to the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> RequestWriter<'a> {
        RequestWriter { out }
    }

    /// Begins a command of `count` arguments, its name included; they follow as that many calls of
    /// [`RequestWriter::arg`] and its like.
    #[inline]
    pub fn begin(&mut self, count: usize) {
        header(self.out, b'*', count);
    }

    /// Writes one argument.
    #[inline]
    pub fn arg(&mut self, bytes: &[u8]) {
        self.out.reserve(bytes.len() + 32);
        header(self.out, b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes one argument: `value` in decimal.
    pub fn arg_integer(&mut self, value: i64) {
        self.arg(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Writes one argument: the bytes of `rope`.
    pub fn arg_rope(&mut self, rope: &Rope) {
        header(self.out, b'$', rope.len());
        self.out.reserve(rope.len() + 2);
        rope.slices(..)
            .for_each(|slice| self.out.extend_from_slice(slice));
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes a whole command as an inline request: words that need no quoting.
    pub fn inline(&mut self, line: &str) {
        self.out.extend_from_slice(line.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes a whole command.
    pub fn command(&mut self, args: &[&[u8]]) {
        self.begin(args.len());
        args.iter().for_each(|arg| self.arg(arg));
    }

    /// Writes a whole command out of parsed arguments.
    pub fn args(&mut self, args: Args<'_>) {
        self.begin(args.len());
        for index in 0..args.len() {
            match args.rope(index) {
                Some(rope) => self.arg_rope(rope),
                None => self.arg(&args[index]),
            }
        }
    }
}
