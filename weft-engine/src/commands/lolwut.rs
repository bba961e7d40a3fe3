//! LOLWUT: a piece of cloth, woven anew for everyone who asks.

use std::fmt::Write as _;

use super::options::{integer, is};
use crate::command::{Argument, Categories, CommandRow, Flags};
use crate::dispatch::Context;
use crate::error::CommandError;
use crate::identity::{REDIS_VERSION, WEFT_VERSION};

/// The rows of this family.
pub(super) const ROWS: &[CommandRow] = &[CommandRow {
    name: "lolwut",
    arity: -1,
    flags: Flags::READONLY.with(Flags::FAST),
    categories: Categories::NONE,
    group: "server",
    since: "5.0.0",
    summary: "Shows a woven pattern and the version.",
    arguments: &[Argument::integer("version").token("VERSION").optional()],
    handler: lolwut,
    ..CommandRow::DEFAULT
}];

/// Threads of the cloth, as many as fit a terminal.
const WARP_THREADS: usize = 64;
const WEFT_THREADS: usize = 16;

/// A weave: the weft passes over a warp thread where `(x * across + y * along) % repeat` is below `floats`.
struct Weave {
    across: usize,
    along: usize,
    repeat: usize,
    floats: usize,
    /// Whether the slope turns in the middle, which makes a herringbone.
    turns: bool,
}

impl Weave {
    fn random(random: &mut fastrand::Rng) -> Self {
        let repeat = random.usize(2..=8);
        Self {
            across: random.usize(1..repeat),
            along: random.usize(1..repeat),
            repeat,
            floats: random.usize(1..repeat),
            turns: random.bool(),
        }
    }

    fn weft_is_above(&self, x: usize, y: usize) -> bool {
        let x = if self.turns && x >= WARP_THREADS / 2 {
            WARP_THREADS - 1 - x
        } else {
            x
        };
        (x * self.across + y * self.along) % self.repeat < self.floats
    }
}

/// The version of the art that is asked for changes nothing: there is one.
fn lolwut(cx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if let (Some(word), Some(version)) = (cx.args.get(1), cx.args.get(2))
        && is(word, "VERSION")
    {
        integer(version)?;
    }
    let weave = Weave::random(&mut cx.worker.random);
    let mut text = String::new();
    for y in 0..WEFT_THREADS {
        text.extend((0..WARP_THREADS).map(|x| {
            if weave.weft_is_above(x, y) {
                '━'
            } else {
                '┃'
            }
        }));
        text.push('\n');
    }
    let _ = write!(
        text,
        "\nWarp and weft, repeat of {}. Weft ver. {WEFT_VERSION}, Redis ver. {REDIS_VERSION}\n",
        weave.repeat
    );
    cx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}
