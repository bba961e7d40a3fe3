//! Requests: whole, cut, one at a time and byte by byte must be the same; so must be what is written again.
//!
//! The first bytes of the input choose limits and cuts, the rest is the stream. Wherever the stream holds `0x01 n` and
//! the first byte asks for it, that becomes a run of `n` times 1 KiB, so that large arguments are reached.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_resp::{Limits, OwnedArgs, ProtocolError, RequestParser, RequestWriter, Requests};

type Outcome = (Vec<OwnedArgs>, Option<ProtocolError>);

fn run<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    limits: &Limits,
    max_requests: usize,
    direct: bool,
) -> Outcome {
    let mut parser = RequestParser::new();
    let mut requests = Requests::new();
    let mut found = Vec::new();
    for mut piece in pieces {
        while direct
            && !piece.is_empty()
            && let Some(target) = parser.large_target()
        {
            let count = target.len().min(piece.len());
            target[..count].copy_from_slice(&piece[..count]);
            parser.large_filled(count);
            piece = &piece[count..];
        }
        let source = parser.begin(piece);
        loop {
            requests.clear();
            let result = parser.parse(&source, limits, max_requests, &mut requests);
            assert!(requests.len() <= max_requests);
            found.extend(requests.iter(&source).map(OwnedArgs::from));
            match result {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        parser.end(source);
    }
    (found, None)
}

/// Replaces `0x01 n` by `n` KiB of one byte.
fn expand(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (1, [count, tail @ ..]) if out.len() < 300_000 => {
                out.resize(out.len() + usize::from(*count) * 1024, b'1');
                rest = tail;
            }
            _ => out.push(*first),
        }
    }
    out
}

fuzz_target!(|input: &[u8]| {
    let [flags, first, second, max_requests, stream @ ..] = input else {
        return;
    };
    let expanded;
    let stream = if flags & 1 == 0 {
        stream
    } else {
        expanded = expand(stream);
        &expanded
    };
    let limits = Limits {
        authenticated: flags & 2 == 0,
        bulk_max: if flags & 4 == 0 { 512 << 20 } else { 100 },
        inline_max: if flags & 8 == 0 { 64 << 10 } else { 100 },
        multibulk_max: if flags & 16 == 0 {
            i32::MAX as usize
        } else {
            20
        },
    };
    let direct = flags & 32 == 0;
    let whole = run(std::iter::once(stream), &limits, usize::MAX, false);
    let mut cuts = [*first, *second].map(|cut| stream.len() * usize::from(cut) / 256);
    cuts.sort_unstable();
    let pieces = [
        &stream[..cuts[0]],
        &stream[cuts[0]..cuts[1]],
        &stream[cuts[1]..],
    ];
    let max_requests = usize::from(*max_requests) + 1;
    assert!(
        run(pieces.into_iter(), &limits, max_requests, direct) == whole,
        "three pieces differ"
    );
    let step = if stream.len() > 4096 { 997 } else { 1 };
    assert!(
        run(stream.chunks(step), &limits, 1, direct) == whole,
        "small pieces differ"
    );
    let mut again = Vec::new();
    whole
        .0
        .iter()
        .for_each(|args| RequestWriter::new(&mut again).args(args.args()));
    let (written, error) = run(
        std::iter::once(&again[..]),
        &Limits::default(),
        usize::MAX,
        false,
    );
    assert!(
        error.is_none() && written == whole.0,
        "written again differs"
    );
});
