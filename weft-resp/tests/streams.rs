//! Properties of request parsing: no bytes panic, no cut changes the result, large arguments arrive in ropes.

use proptest::collection::vec;
use proptest::prelude::*;
use weft_resp::{
    LARGE_ARGUMENT_BYTES, Limits, OwnedArgs, ProtocolError, RequestParser, RequestWriter, Requests,
};

/// The requests of `pieces` and the error that ended them. Where the parser offers a place for the inside of a large
/// argument, `direct` says whether the bytes are put there.
fn run(
    pieces: &[&[u8]],
    limits: &Limits,
    max_requests: usize,
    direct: bool,
) -> (Vec<OwnedArgs>, Option<ProtocolError>) {
    let mut parser = RequestParser::new();
    let mut requests = Requests::new();
    let mut found = Vec::new();
    for &piece in pieces {
        let mut piece = piece;
        while direct && let Some(target) = parser.large_target() {
            assert!(!target.is_empty());
            let count = target.len().min(piece.len());
            target[..count].copy_from_slice(&piece[..count]);
            parser.large_filled(count);
            piece = &piece[count..];
            if piece.is_empty() {
                break;
            }
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

/// Cuts `stream` at `cuts`, given in ten-thousandths of its length.
fn cut<'a>(stream: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| stream.len() * cut / 10_000).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &stream[pair[0]..pair[1]])
        .collect()
}

/// One request, as bytes on the wire.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let arg = prop_oneof![
        6 => vec(any::<u8>(), 0..40),
        2 => vec(any::<u8>(), 90..1100),
        1 => (0..200_000usize, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => (0..3usize).prop_map(|off| vec![b'x'; LARGE_ARGUMENT_BYTES - 1 + off]),
    ];
    let multibulk = vec(arg, 1..6).prop_map(|args| {
        let mut stream = Vec::new();
        RequestWriter::new(&mut stream)
            .command(&args.iter().map(Vec::as_slice).collect::<Vec<_>>());
        stream
    });
    let many = (1..400usize).prop_map(|count| {
        let mut stream = Vec::new();
        RequestWriter::new(&mut stream).command(&vec![&b"arg"[..]; count]);
        stream
    });
    prop_oneof![
        8 => multibulk,
        1 => many,
        2 => "[a-z]{1,8}( [a-z]{0,5}| \"[a-z ]{0,5}\"| '[a-z ]{0,5}'| \"\\\\x4[0-9a-f]\"){0,4}\r?\n".prop_map(String::into_bytes),
        1 => Just(b"*0\r\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
    ]
}

/// Bytes of which many mean something to the parser.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    const TOKENS: &[&[u8]] = &[
        b"*1\r\n",
        b"*2\r\n",
        b"*3\r\n",
        b"$3\r\nGET\r\n",
        b"$1\r\nk\r\n",
        b"$0\r\n\r\n",
        b"$12\r\nabcdefghijkl\r\n",
        b"\r\n",
        b"$",
        b"*",
        b"\"",
        b"'",
        b"\\x4",
        b" ",
        b"PING",
        b"\0",
        b"-1",
        b"100",
        b"99999999999999999999",
        b"*-1\r\n",
        b"\n",
        b"\r",
        b"$100\r\n",
        b"$100000\r\n",
    ];
    let token = proptest::sample::select(TOKENS);
    vec(
        prop_oneof![6 => token.prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..6)],
        0..40,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_cut_changes_the_requests(
        parts in vec(request(), 1..8),
        cuts in vec(0..10_000usize, 0..40),
        max_requests in 1..5usize,
        direct in any::<bool>(),
    ) {
        let stream = parts.concat();
        let limits = Limits::default();
        let (whole, error) = run(&[&stream], &limits, usize::MAX, false);
        prop_assert_eq!(error, None);
        let (pieces, error) = run(&cut(&stream, &cuts), &limits, max_requests, direct);
        prop_assert_eq!(error, None);
        prop_assert!(pieces == whole);
        // What was parsed, written again and parsed again, is the same.
        let mut again = Vec::new();
        whole.iter().for_each(|args| RequestWriter::new(&mut again).args(args.args()));
        prop_assert!(run(&[&again], &limits, usize::MAX, false) == (whole, None));
    }

    #[test]
    fn no_cut_changes_the_error(
        stream in noise(),
        cuts in vec(0..10_000usize, 0..20),
        max_requests in 1..4usize,
        authenticated in any::<bool>(),
        bulk_max in prop_oneof![Just(50usize), Just(512 << 20)],
    ) {
        let limits = Limits { authenticated, bulk_max, inline_max: 64, multibulk_max: 50 };
        let whole = run(&[&stream], &limits, usize::MAX, false);
        prop_assert!(run(&cut(&stream, &cuts), &limits, max_requests, true) == whole);
        prop_assert!(run(&stream.chunks(1).collect::<Vec<_>>(), &limits, 1, false) == whole);
    }
}

#[test]
fn large_arguments_are_ropes() {
    for (len, large) in [
        (LARGE_ARGUMENT_BYTES, false),
        (LARGE_ARGUMENT_BYTES + 1, true),
        (1_000_000, true),
    ] {
        let value: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
        let mut stream = Vec::new();
        RequestWriter::new(&mut stream).command(&[b"SET", b"key", &value]);
        for step in [stream.len(), 1000, 65_536, 70_001] {
            for direct in [false, true] {
                let pieces: Vec<&[u8]> = stream.chunks(step).collect();
                let (found, error) = run(&pieces, &Limits::default(), 10, direct);
                assert_eq!((found.len(), error), (1, None));
                let args = found[0].args();
                assert_eq!(
                    (args.len(), &args[0], &args[1]),
                    (3, &b"SET"[..], &b"key"[..])
                );
                assert_eq!(args.rope(2).is_some(), large);
                assert!(args.rope(2).is_none_or(|rope| *rope == *value));
                assert!(args[2] == value);
                assert_eq!(args.bytes_len(2), Some(len));
                assert_eq!(args.total_bytes(), len + 6);
                // The owned copy shares the rope of what it was copied from.
                let copy = OwnedArgs::from(args);
                assert!(copy == found[0]);
                if let (Some(left), Some(right)) = (args.rope(2), copy.args().rope(2)) {
                    assert!(std::ptr::eq(
                        left.chunks()[0].as_slice(),
                        right.chunks()[0].as_slice()
                    ));
                }
            }
        }
    }
}

#[test]
fn memory_follows_what_arrived() {
    let limits = Limits::default();
    let mut requests = Requests::new();
    let mut parser = RequestParser::new();
    let mut feed = |parser: &mut RequestParser, data: &[u8]| {
        let source = parser.begin(data);
        assert_eq!(parser.parse(&source, &limits, 10, &mut requests), Ok(false));
        parser.end(source);
    };
    assert_eq!(parser.buffered_bytes(), 0);
    feed(&mut parser, b"*2147483647\r\n$536870912\r\n");
    assert!(parser.buffered_bytes() < 100, "{}", parser.buffered_bytes());
    assert_eq!(
        parser.large_target().map(|target| target.len()),
        Some(65_536)
    );
    feed(&mut parser, &[b'x'; 100_000]);
    assert!(
        (100_000..100_100).contains(&parser.buffered_bytes()),
        "{}",
        parser.buffered_bytes()
    );
    assert_eq!(
        parser.large_target().map(|target| target.len()),
        Some(2 * 65_536 - 100_000)
    );

    let mut parser = RequestParser::new();
    feed(&mut parser, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nabc");
    assert_eq!(parser.large_target(), None);
    assert!(parser.buffered_bytes() >= 29);
    feed(&mut parser, b"de\r\n");
    assert_eq!(parser.buffered_bytes(), 0);
}

#[test]
fn a_slowly_arriving_request_costs_linear_time() {
    // Quadratic work on 300,000 arguments, one read each, would take minutes.
    let mut stream = b"*300000\r\n".to_vec();
    (0..300_000).for_each(|_| stream.extend_from_slice(b"$1\r\na\r\n"));
    let pieces: Vec<&[u8]> = stream.chunks(7).collect();
    let (found, error) = run(&pieces, &Limits::default(), 10, false);
    assert_eq!((found.len(), error), (1, None));
    assert_eq!(found[0].len(), 300_000);
}

#[test]
fn owned_arguments() {
    let mut owned = OwnedArgs::from_slices(&[b"SET", b"k", b""]);
    owned.push(b"more");
    owned.push(&[b'x'; 70_000]);
    let args = owned.args();
    assert_eq!(args.len(), 5);
    assert_eq!(
        args.iter().take(4).collect::<Vec<_>>(),
        [&b"SET"[..], b"k", b"", b"more"]
    );
    assert_eq!(args.iter().len(), 5);
    assert_eq!(args.rope(4).map(|rope| rope.len()), Some(70_000));
    assert_eq!(args.get(5), None);
    assert_eq!(args.rope(5), None);
    assert_eq!(args.skip(2).len(), 3);
    assert_eq!(&args.skip(3)[0], b"more");
    assert!(args.skip(6).is_empty());
    assert!(owned.allocated_bytes() >= 70_008);
    assert_eq!(owned.clone(), owned);
    assert_ne!(
        OwnedArgs::from_slices(&[b"a"]),
        OwnedArgs::from_slices(&[b"b"])
    );
}
