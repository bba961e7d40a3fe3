//! Random requests: mostly well-formed from a command's syntax, with odd values, then bent in one of many ways.
//!
//! Everything comes from one seed. Few keys, so that commands meet each other's data. Times to live are either so
//! long that nothing expires during a round and so far apart that no two servers can order them differently, or past,
//! or a few milliseconds: after such a request the step says so and the run waits until the key is gone on both.

mod streams;

use crate::command_table::{Argument, ArgumentKind, CommandRow};
use crate::literal::Base;
use crate::rules::{asks, echoes, rule};

/// The keys of a run.
pub const KEYS: &[&str] = &["k1", "k2", "k3", "k4", "k5", "k6"];
/// Keys of sorted sets whose scores are all equal, for commands that ask for a range of members: of others it is undefined.
const LEVEL_KEYS: &[&str] = &["l1", "l2"];
const ODD_KEYS: &[&[u8]] = &[b"", b"nokey", b"\x00\xff\r\n", b"k[1]"];

const STRINGS: &[&[u8]] = &[
    b"",
    b"a",
    b"abc",
    b"hello world",
    b"10",
    b"-1",
    b"0",
    b"007",
    b"+1",
    b" 1",
    b"1 ",
    b"3.14",
    b"-2.5e3",
    b"1e400",
    b"inf",
    b"-inf",
    b"nan",
    b"0x10",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"12345678901234567890",
    b"ohmytext",
    b"mynewtext",
    b"\x00\x01\x80\xff",
    b"k1",
    b"OK",
    b"true",
    b"0.1",
    b"10.000000000000000000001",
    b"179769313486231570000000000000000000000",
    b"100000000000000000000000000.5",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
/// Lengths of long values: around the sizes at which a store may change a string's form.
const LONG_LENGTHS: &[usize] = &[64, 255, 256, 4096, 65_535, 65_536, 70_000];
/// Arguments that may be long.
const LONG_ARGUMENTS: &[&str] = &["value", "message", "element", "member", "field", "string"];
/// The most bytes of an argument that an error may repeat.
const ECHOED_MAX: usize = 1000;
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "-2",
    "-3",
    "7",
    "10",
    "-10",
    "64",
    "100",
    "1000",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
];
const ODD_INTEGERS: &[&str] = &[
    "",
    "abc",
    "1.5",
    "+1",
    " 1",
    "1 ",
    "01",
    "-0",
    "--1",
    "0x1",
    "1e3",
    "nan",
    "inf",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999",
];
/// Offsets either small, or beyond what a string can hold: between them the servers would only fill their memory.
const OFFSETS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "10",
    "-1",
    "-2",
    "-3",
    "-100",
    "100",
    "5000",
    "70000",
    "536870912",
    "536870911999",
    "9223372036854775807",
    "-9223372036854775808",
];
/// Bits to look for.
const BITS: &[&str] = &["0", "1", "0", "1", "0", "1", "2", "-1"];
/// Types of bit fields.
const FIELD_TYPES: &[&str] = &[
    "u1", "i1", "u2", "i5", "u7", "u8", "i8", "u13", "i16", "u31", "u32", "i32", "i33", "u57",
    "i62", "u63", "i63", "i64",
];
const ODD_FIELD_TYPES: &[&str] = &[
    "u64", "i65", "u0", "i0", "u", "U8", "8", "u08", "i-1", "i8x", "",
];
/// What is written to bits, mostly, and to bit fields.
const FIELD_VALUES: &[&str] = &[
    "0",
    "1",
    "0",
    "1",
    "-1",
    "2",
    "100",
    "255",
    "256",
    "-129",
    "65536",
    "-9223372036854775808",
    "9223372036854775807",
    "4611686018427387904",
];
/// The same for offsets in bits.
const BIT_OFFSETS: &[&str] = &[
    "0",
    "1",
    "7",
    "8",
    "31",
    "63",
    "100",
    "-1",
    "5000",
    "#0",
    "#3",
    "4294967296",
    "9223372036854775807",
];
const DOUBLES: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.1",
    "0.2",
    "3.0e3",
    "-1.5e-7",
    "1e17",
    "1e-17",
    "5.0e300",
    "123456789.123456789",
    "inf",
    "-inf",
    "+inf",
    "1e4931",
    "1e5000",
    "-0",
    "0.30000000000000004",
    "9007199254740993",
    "17179869184.25",
];
const ODD_DOUBLES: &[&str] = &[
    "", "nan", "abc", " 1", "1 ", "1,5", "0x1p3", "infinity", "1e", ".", "1.5.5", "+1.5", ".5",
    "5.",
];
/// Ends of ranges of scores and of members.
const SCORE_ENDS: &[&str] = &[
    "-inf", "+inf", "inf", "(-inf", "0", "(0", "1", "(1", "5", "(100", "-3.5", "1e3", "(", "300",
];
const ODD_SCORE_ENDS: &[&str] = &["", "nan", "(nan", "[1", "1e400", " 1", "0x1", "a", "-"];
const MEMBER_ENDS: &[&str] = &[
    "-", "+", "-", "+", "[a", "(a", "[m1", "(m2", "[m250", "(m99", "[", "(", "[zz", "[abc", "(5",
];
const ODD_MEMBER_ENDS: &[&str] = &["", "a", "-a", "+a", "0", "inf"];
/// Coordinates: the edges of the map and beyond, and round ones.
const COORDINATES: &[&str] = &[
    "0",
    "-0",
    "180",
    "-180",
    "179.9999",
    "-179.9999",
    "85.05112878",
    "-85.05112878",
    "85.05112879",
    "85",
    "-85",
    "66.5",
    "-80.1",
    "45",
    "90",
    "13.361389",
    "38.115556",
    "1e-7",
];
const ODD_COORDINATES: &[&str] = &[
    "", "nan", "inf", "-inf", "181", "1e300", " 1", "0x10", "abc",
];
/// Lengths of radii and sides, in any unit.
const LENGTHS: &[&str] = &[
    "0",
    "1",
    "0.5",
    "10",
    "100",
    "1000",
    "5000",
    "20000",
    "20015.1",
    "1e7",
    "20037726.37",
    "1e30",
];
const ODD_LENGTHS: &[&str] = &["", "-1", "-0", "nan", "inf", "-inf", "abc", "1e308", " 1"];
const PATTERNS: &[&str] = &[
    "*", "k*", "k?", "k[1-3]", "k[^1]", "\\k1", "", "**", "?", "[", "nokey", "K1", "*1",
];
/// Patterns of SORT: names of keys with a place for an element.
const SORT_PATTERNS: &[&str] = &[
    "nosort", "k*", "*", "k*->f1", "k1->*", "nokey*", "k*->", "*->f2", "w*", "k?*", "**",
];
const ODD_SORT_PATTERNS: &[&str] = &["", "k1", "->f", "*->", "\\*", "#*"];
const ODD_WORDS: &[&[u8]] = &[
    b"", b"foo", b"\x00", b"NX", b"XX", b"EX", b"PX", b"GET", b"KEEPTTL", b"COUNT", b"*", b"-1",
    b"\r\n", b"'", b"\"",
];

/// Long times to live begin here (as milliseconds: half an hour) ...
const LONG_TTL: i64 = 2_000_000;
/// ... and differ by at least this much (5 s), which is more than two servers can drift apart.
const LONG_TTL_STEP: i64 = 5_000;
/// So many different ones exist; a prime, so that a multiplier walks through all of them.
const LONG_TTL_COUNT: i64 = 10_007;
/// A time to live of milliseconds that ends within a run's wait.
const SHORT_TTL_MS: &str = "2";
const EXPIRIES_OVER: &[&str] = &["0", "-1", "1", "-9223372036854775808", "1000"];
const EXPIRIES_HUGE: &[&str] = &[
    "9223372036854775807",
    "9223372036854775",
    "9223372036854776",
    "18446744073709551",
];

/// Longest request made, in arguments.
const ARGUMENTS_MAX: usize = 64;

/// One request of a run and what has to happen after it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name of its row, by which its rule is found.
    pub command: String,
    /// Its arguments, the name included.
    pub request: Vec<Vec<u8>>,
    /// What the run does before it sends the next one.
    pub after: After,
}

/// What follows a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next one.
    Nothing,
    /// Its reply is looked at before anything else is sent.
    Settle,
    /// Its keys are asked for: a key whose time is over stays in the counts until then, or until a sweep.
    Touch,
    /// A wait until the few milliseconds of its time to live are over, and the same.
    Expire,
}

/// Makes the requests of one run.
#[derive(Debug)]
pub struct Generator {
    random: fastrand::Rng,
    main: Vec<CommandRow>,
    companions: Vec<CommandRow>,
    tokens: Vec<String>,
    ttl_number: i64,
    short_ttl: bool,
    past_time: bool,
    bits: bool,
    /// Times are those of fields. The reference counts and removes fields whose time has come until its own cycle finds them, so that a
    /// short time would be a difference.
    fields: bool,
    ends: Ends,
    /// All scores are equal, and keys are those of sorted sets of that kind.
    level: bool,
    /// How many keys the last argument that counts them stands for.
    keys_counted: usize,
    /// The command is about streams.
    stream: bool,
    /// It adds an entry.
    adds_entry: bool,
    /// Entries that were given an id of their own.
    next_entry: u64,
}

/// What the ends of a request's ranges are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Ranks,
    Scores,
    Members,
}

impl Generator {
    /// Requests of the rows in `main`, of which there has to be one, and among them some of `companions`.
    pub fn new(seed: u64, main: Vec<CommandRow>, companions: Vec<CommandRow>) -> Self {
        let mut tokens = Vec::new();
        for row in main.iter().chain(&companions) {
            collect_tokens(&row.arguments, &mut tokens);
        }
        tokens.retain(|token| streams::is_harmless(token));
        tokens.sort();
        tokens.dedup();
        Generator {
            random: fastrand::Rng::with_seed(seed),
            main,
            companions,
            tokens,
            ttl_number: 0,
            short_ttl: false,
            past_time: false,
            bits: false,
            fields: false,
            ends: Ends::Ranks,
            level: false,
            keys_counted: 1,
            stream: false,
            adds_entry: false,
            next_entry: 0,
        }
    }

    /// The next request.
    pub fn step(&mut self) -> Step {
        let row = self.row();
        self.request(&row)
    }

    fn row(&mut self) -> CommandRow {
        let companion = !self.companions.is_empty() && self.one_in(5);
        let rows = if companion {
            &self.companions
        } else {
            &self.main
        };
        rows[self.random.usize(..rows.len())].clone()
    }

    fn request(&mut self, row: &CommandRow) -> Step {
        self.short_ttl = false;
        self.past_time = false;
        self.bits = row.family == "bitmap";
        self.fields = row.family == "hash";
        self.stream = row.family == "stream";
        self.adds_entry = row.name() == "xadd";
        self.ends = match row.name().as_str() {
            "zrange" | "zrangestore" => {
                [Ends::Ranks, Ends::Scores, Ends::Members][self.random.usize(..3)]
            }
            name if name.contains("bylex") || name == "zlexcount" => Ends::Members,
            _ => Ends::Scores,
        };
        self.level = row.family == "sorted-set"
            && (self.ends == Ends::Members || (row.name() == "zadd" && self.one_in(4)));
        let mut request: Vec<Vec<u8>> = row
            .words
            .iter()
            .map(|word| word.clone().into_bytes())
            .collect();
        self.arguments(&row.arguments, &mut request, true);
        if row.name().starts_with("command|getkeys") && !self.one_in(10) {
            // Its arguments are another command, which may be of any family.
            request.truncate(row.words.len());
            // Of several STORE options the reference names others than it uses.
            let stores =
                |row: &CommandRow| row.name() == "sort" || row.name().contains("georadius");
            let inner = self.row();
            let inner = if stores(&inner) { row.clone() } else { inner };
            request.extend(inner.words.iter().map(|word| word.clone().into_bytes()));
            self.arguments(&inner.arguments, &mut request, true);
        }
        let bent = self.one_in(6) && !self.level;
        if bent {
            for _ in 0..=self.random.usize(..2) {
                self.bend(row, &mut request);
            }
        }
        request.truncate(ARGUMENTS_MAX);
        if bent && echoes(&row.name()) {
            request
                .iter_mut()
                .for_each(|argument| argument.truncate(ECHOED_MAX));
        }
        if has_expiry(&row.arguments) && bent && !self.stream {
            self.keep_expiry_clear(row.words.len(), &mut request);
        }
        if row.name() == "lset" {
            keep_index_short(&mut request);
        }
        if row.name().starts_with("sort") {
            keep_order_defined(&mut request);
        }
        if self.one_in(12) {
            let index = if self.one_in(2) {
                0
            } else {
                self.random.usize(..request.len())
            };
            self.change_case(&mut request[index]);
        }
        let short = self.short_ttl && !bent;
        let after = if short {
            After::Expire
        } else if self.past_time || (bent && has_expiry(&row.arguments) && !self.stream) {
            After::Touch
        } else if asks(rule(&row.name())) {
            After::Settle
        } else {
            After::Nothing
        };
        Step {
            command: row.name(),
            request,
            after,
        }
    }

    fn arguments(&mut self, arguments: &[Argument], out: &mut Vec<Vec<u8>>, top: bool) {
        // Options behind the fixed arguments can stand in any order.
        let fixed = arguments
            .iter()
            .rposition(|argument| !argument.optional)
            .map_or(0, |index| index + 1);
        let (fixed, options) = arguments.split_at(fixed);
        let mut number = None;
        for argument in fixed {
            let start = out.len();
            self.argument(argument, out);
            if argument.name == "numkeys" {
                number = Some(start);
            } else if argument.kind == ArgumentKind::Key
                && argument.multiple
                && let Some(number) = number.take()
                && !self.one_in(12)
            {
                self.keys_counted = out.len() - start;
                out[number] = self.keys_counted.to_string().into_bytes();
            }
        }
        let mut parts = Vec::new();
        for option in options {
            let mut part = Vec::new();
            self.argument(option, &mut part);
            parts.push(part);
        }
        if top && self.one_in(3) {
            self.random.shuffle(&mut parts);
        }
        out.extend(parts.into_iter().flatten());
    }

    fn argument(&mut self, argument: &Argument, out: &mut Vec<Vec<u8>>) {
        if argument.optional && (self.random.usize(..10) < 6 || streams::is_left_out(argument)) {
            return;
        }
        let times = if argument.multiple && argument.name == "member" && self.one_in(5) {
            // Enough for collections to grow out of their small forms.
            1 + self.random.usize(..ARGUMENTS_MAX)
        } else if argument.multiple && argument.name == "data" && self.one_in(4) {
            1 + self.random.usize(..ARGUMENTS_MAX / 2)
        } else if argument.name == "weight" && !self.one_in(12) {
            self.keys_counted
        } else if argument.multiple {
            1 + self.random.usize(..3)
        } else {
            1
        };
        for time in 0..times {
            if let Some(token) = &argument.token
                && (time == 0 || argument.multiple_token)
            {
                out.push(token.clone().into_bytes());
            }
            match argument.kind {
                ArgumentKind::PureToken => {}
                ArgumentKind::Block => {
                    let start = out.len();
                    self.arguments(&argument.children, out, false);
                    self.count_fields(argument, &mut out[start..]);
                    if self.stream {
                        let mut words = out.split_off(start);
                        self.balance_streams(argument, &mut words);
                        out.append(&mut words);
                    }
                }
                ArgumentKind::OneOf => {
                    self.alternative(argument, out);
                    // Two of the alternatives at once.
                    if self.one_in(25) {
                        self.alternative(argument, out);
                    }
                }
                _ => {
                    let value = self.value(argument);
                    out.push(value);
                }
            }
        }
    }

    /// Makes the number of fields before them the right one, mostly.
    fn count_fields(&mut self, block: &Argument, words: &mut [Vec<u8>]) {
        let counts = block
            .children
            .first()
            .is_some_and(|child| matches!(child.name.as_str(), "numfields" | "numids"));
        if counts && !self.one_in(12) {
            let with_values = block.children.iter().any(|child| child.name == "data");
            let fields = (words.len() - 1) / if with_values { 2 } else { 1 };
            words[0] = fields.to_string().into_bytes();
        }
    }

    fn alternative(&mut self, argument: &Argument, out: &mut Vec<Vec<u8>>) {
        // An id that a server makes from its clock is no two servers' same.
        let children: Vec<&Argument> = argument
            .children
            .iter()
            .filter(|child| child.name != "auto-id")
            .collect();
        if let Some(child) = self.random.choice(children) {
            self.argument(child, out);
        }
    }

    fn value(&mut self, argument: &Argument) -> Vec<u8> {
        if self.stream
            && let Some(value) = self.stream_value(argument)
        {
            return value;
        }
        if is_expiry(argument) {
            return self.expiry(argument);
        }
        match argument.kind {
            ArgumentKind::Double if argument.name == "score" && self.level => b"0".to_vec(),
            ArgumentKind::Double if matches!(argument.name.as_str(), "min" | "max") => {
                self.pick_text(SCORE_ENDS, ODD_SCORE_ENDS)
            }
            ArgumentKind::String
                if matches!(argument.name.as_str(), "min" | "max" | "start" | "stop") =>
            {
                match self.ends {
                    Ends::Ranks => self.pick_text(INTEGERS, ODD_INTEGERS),
                    Ends::Scores => self.pick_text(SCORE_ENDS, ODD_SCORE_ENDS),
                    Ends::Members => self.pick_text(MEMBER_ENDS, ODD_MEMBER_ENDS),
                }
            }
            ArgumentKind::Key => self.key(),
            ArgumentKind::Integer => match argument.name.as_str() {
                "offset" if self.bits => self.pick_text(BIT_OFFSETS, ODD_INTEGERS),
                "bit" => self.pick_text(BITS, ODD_INTEGERS),
                "value" | "increment" if self.bits => self.pick_text(FIELD_VALUES, ODD_INTEGERS),
                "offset" | "start" | "end" => self.pick_text(OFFSETS, ODD_INTEGERS),
                "cursor" => self.pick_text(&["0", "0", "0", "0", "1", "42"], ODD_INTEGERS),
                "index" | "index1" | "index2" | "destination-db" => {
                    self.pick_text(&["0", "1", "2", "15", "16", "-1"], ODD_INTEGERS)
                }
                "count" | "protover" | "len" | "min-match-len" => {
                    self.pick_text(&["0", "1", "2", "3", "4", "10", "-1", "1000"], ODD_INTEGERS)
                }
                "numkeys" => self.pick_text(&["1", "2", "3", "0"], ODD_INTEGERS),
                _ if self.bits => self.pick_text(BIT_OFFSETS, ODD_INTEGERS),
                _ if self.one_in(3) => (self.random.i64(-50..50)).to_string().into_bytes(),
                _ => self.pick_text(INTEGERS, ODD_INTEGERS),
            },
            ArgumentKind::Double if matches!(argument.name.as_str(), "longitude" | "latitude") => {
                self.coordinate(&argument.name)
            }
            ArgumentKind::Double
                if matches!(argument.name.as_str(), "radius" | "width" | "height") =>
            {
                self.length()
            }
            ArgumentKind::Double if self.one_in(3) => {
                (self.random.i64(-1_000_000..1_000_000) as f64 / 1000.0)
                    .to_string()
                    .into_bytes()
            }
            ArgumentKind::Double => self.pick_text(DOUBLES, ODD_DOUBLES),
            ArgumentKind::Pattern if argument.name == "get-pattern" && self.one_in(3) => {
                b"#".to_vec()
            }
            ArgumentKind::Pattern if argument.name.ends_with("-pattern") => {
                self.pick_text(SORT_PATTERNS, ODD_SORT_PATTERNS)
            }
            ArgumentKind::Pattern => self.pick_text(PATTERNS, &["\\", "[a", "k[1-"]),
            _ => self.string(&argument.name),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        if self.level {
            LEVEL_KEYS[self.random.usize(..LEVEL_KEYS.len())]
                .as_bytes()
                .to_vec()
        } else if self.one_in(25) {
            ODD_KEYS[self.random.usize(..ODD_KEYS.len())].to_vec()
        } else {
            KEYS[self.random.usize(..KEYS.len())].as_bytes().to_vec()
        }
    }

    fn string(&mut self, name: &str) -> Vec<u8> {
        if name == "encoding" {
            return self.pick_text(FIELD_TYPES, ODD_FIELD_TYPES);
        }
        if name == "type" {
            return self.pick_text(
                &["string", "list", "hash", "set", "zset", "stream", "STRING"],
                &["", "foo"],
            );
        }
        if name == "member" && self.one_in(2) {
            let number = self.random.usize(..300);
            let before = if self.one_in(3) { "" } else { "m" };
            return format!("{before}{number}").into_bytes();
        }
        if name == "field" && self.one_in(2) {
            return format!("f{}", self.random.usize(..60)).into_bytes();
        }
        match self.random.usize(..12) {
            // Other strings may be repeated in an error, and a line of that length is more than clients take.
            0 if LONG_ARGUMENTS.contains(&name) => {
                let length = LONG_LENGTHS[self.random.usize(..LONG_LENGTHS.len())];
                vec![b'a' + self.random.u8(..26); length]
            }
            1 | 2 => self.random.i64(-100..1000).to_string().into_bytes(),
            3 => (0..self.random.usize(..20))
                .map(|_| self.random.u8(..))
                .collect(),
            4 => (0..self.random.usize(..40))
                .map(|_| b"abc"[self.random.usize(..3)])
                .collect(),
            _ => STRINGS[self.random.usize(..STRINGS.len())].to_vec(),
        }
    }

    /// A coordinate anywhere on the map, mostly, or near to others.
    fn coordinate(&mut self, name: &str) -> Vec<u8> {
        let max = if name == "longitude" {
            180.0
        } else {
            85.051_128_78
        };
        let text = match self.random.usize(..40) {
            0 => return self.pick_text(ODD_COORDINATES, ODD_COORDINATES),
            1..4 => return self.pick_text(COORDINATES, COORDINATES),
            4..16 => ((self.random.f64() * 2.0 - 1.0) * max).to_string(),
            // Towards the poles and the line where the days meet.
            16..22 => (max - self.random.f64() * self.random.f64() * 20.0).to_string(),
            22..28 => (-max + self.random.f64() * self.random.f64() * 20.0).to_string(),
            _ => (10.0 + self.random.f64() * self.random.f64()).to_string(),
        };
        text.into_bytes()
    }

    /// A length of any order of magnitude.
    fn length(&mut self) -> Vec<u8> {
        match self.random.usize(..12) {
            0 => self.pick_text(LENGTHS, ODD_LENGTHS),
            _ => 10_f64
                .powf(self.random.f64() * 8.0 - 1.0)
                .to_string()
                .into_bytes(),
        }
    }

    fn expiry(&mut self, argument: &Argument) -> Vec<u8> {
        match self.random.usize(..20) {
            0 => self.pick_text(ODD_INTEGERS, ODD_INTEGERS),
            1 | 2 if argument.kind == ArgumentKind::UnixTime => {
                self.past_time = true;
                self.pick_text(EXPIRIES_OVER, EXPIRIES_OVER)
            }

            1 | 2 => self.pick_text(&["0", "-1", "-1000", "-9223372036854775808"], ODD_INTEGERS),
            // A huge time from now differs between two servers by their own "now"; one that overflows is the same error.
            3 if argument.name == "milliseconds" => i64::MAX.to_string().into_bytes(),
            3 => self.pick_text(EXPIRIES_HUGE, EXPIRIES_HUGE),
            4 if argument.name == "milliseconds" && !self.fields => {
                self.short_ttl = true;
                SHORT_TTL_MS.as_bytes().to_vec()
            }
            _ => {
                let base = match (argument.kind, argument.name.contains("milli")) {
                    (ArgumentKind::UnixTime, true) => Base::NowMilliseconds,
                    (ArgumentKind::UnixTime, false) => Base::NowSeconds,
                    _ => Base::Zero,
                };
                (base.value() + self.long_ttl()).to_string().into_bytes()
            }
        }
    }

    /// A long time to live that no other request of the round has.
    fn long_ttl(&mut self) -> i64 {
        self.ttl_number = (self.ttl_number + 7919) % LONG_TTL_COUNT;
        LONG_TTL + self.ttl_number * LONG_TTL_STEP
    }

    fn bend(&mut self, row: &CommandRow, request: &mut Vec<Vec<u8>>) {
        // What COMMAND GETKEYS is asked about has to stay a command that both have.
        let inner_name = usize::from(
            row.name().starts_with("command|getkeys") && request.len() > row.words.len(),
        );
        let name_length = row.words.len() + inner_name;
        let place = self.random.usize(..=request.len()).max(name_length);
        let existing =
            (request.len() > name_length).then(|| self.random.usize(name_length..request.len()));
        match (self.random.usize(..9), existing) {
            (0, Some(index)) => {
                request.remove(index);
            }
            (1, _) => request.truncate(name_length),
            (2, Some(index)) => request[index] = self.odd_word(),
            (3, Some(index)) => {
                let copy = request[index].clone();
                request.insert(place, copy);
            }
            (4, Some(index)) => {
                let other = self.random.usize(name_length..request.len());
                request.swap(index, other);
            }
            (5, Some(index)) if !self.bits => {
                request[index] = self.pick_text(INTEGERS, ODD_INTEGERS)
            }
            (6, Some(index)) => request[index] = self.pick_text(DOUBLES, ODD_DOUBLES),
            (7, _) if !self.tokens.is_empty() => {
                let token = self.tokens[self.random.usize(..self.tokens.len())].clone();
                request.insert(place, token.into_bytes());
            }
            _ => {
                let word = self.odd_word();
                request.insert(place, word);
            }
        }
    }

    fn odd_word(&mut self) -> Vec<u8> {
        let word = ODD_WORDS[self.random.usize(..ODD_WORDS.len())];
        // In the place of an entry's id it would be one from a clock.
        if self.stream && word == b"*" {
            b"x".to_vec()
        } else {
            word.to_vec()
        }
    }

    /// In a bent request any number can have come to stand where a time to live is read; none may be one that ends
    /// during the round.
    fn keep_expiry_clear(&mut self, name_length: usize, request: &mut [Vec<u8>]) {
        for argument in request.iter_mut().skip(name_length) {
            let number = std::str::from_utf8(argument)
                .ok()
                .and_then(|text| text.parse::<i64>().ok());
            let repeated = |number: i64| {
                number < i64::MAX / 2 && INTEGERS.contains(&number.to_string().as_str())
            };
            if number.is_some_and(|number| number > 0 && (number < LONG_TTL || repeated(number))) {
                *argument = self.long_ttl().to_string().into_bytes();
            }
        }
    }

    fn change_case(&mut self, word: &mut [u8]) {
        let all = self.one_in(2);
        for byte in word {
            if all || self.random.bool() {
                *byte = if byte.is_ascii_uppercase() {
                    byte.to_ascii_lowercase()
                } else {
                    byte.to_ascii_uppercase()
                };
            }
        }
    }

    fn pick_text(&mut self, usual: &[&str], odd: &[&str]) -> Vec<u8> {
        let list = if self.one_in(8) { odd } else { usual };
        list[self.random.usize(..list.len())].as_bytes().to_vec()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.usize(..count) == 0
    }
}

/// The reference drops the upper bits of LSET's index, so that the data would differ from then on.
fn keep_index_short(request: &mut [Vec<u8>]) {
    if let Some(index) = request.get_mut(2)
        && let Ok(text) = std::str::from_utf8(index)
        && text
            .parse::<i64>()
            .is_ok_and(|number| i32::try_from(number).is_err())
    {
        *index = b"1000".to_vec();
    }
}

/// Texts that BY leads to may be equal or missing, and what a table holds has no order then, which STORE would keep. Nor is it stored what
/// is sorted by numbers: after a number out of range in another command, the reference may take any number for one.
fn keep_order_defined(request: &mut Vec<Vec<u8>>) {
    let is = |argument: &[u8], word: &[u8]| argument.eq_ignore_ascii_case(word);
    let has = |request: &[Vec<u8>], word| request.iter().any(|argument| is(argument, word));
    if has(request, b"by") {
        request.retain(|argument| !is(argument, b"alpha"));
    }
    if has(request, b"store") && request.len() > 2 {
        request.retain(|argument| !is(argument, b"by"));
        request.insert(2, b"ALPHA".to_vec());
    }
}

fn collect_tokens(arguments: &[Argument], tokens: &mut Vec<String>) {
    for argument in arguments {
        tokens.extend(argument.token.clone());
        collect_tokens(&argument.children, tokens);
    }
}

fn is_expiry(argument: &Argument) -> bool {
    argument.kind == ArgumentKind::UnixTime
        || (argument.kind == ArgumentKind::Integer
            && matches!(argument.name.as_str(), "seconds" | "milliseconds"))
}

fn has_expiry(arguments: &[Argument]) -> bool {
    arguments
        .iter()
        .any(|argument| is_expiry(argument) || has_expiry(&argument.children))
}
