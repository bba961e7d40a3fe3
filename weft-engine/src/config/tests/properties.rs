//! Properties: what is rewritten reads the same, and no text makes the parser panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Lines that are likely to be accepted, with odd spacing, case and quoting.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        8 => (0..ParameterId::ALL.len()).prop_map(|index| ParameterId::ALL[index].name().to_owned()),
        1 => Just("slave-read-only".to_owned()),
        1 => Just("# a comment".to_owned()),
        1 => Just(String::new()),
    ];
    let value = prop_oneof![
        4 => prop_oneof![
            Just("yes"), Just("NO"), Just("0"), Just("1"), Just("7"), Just("64mb"), Just("5%"), Just("auto"), Just("local"),
            Just("notice"), Just("KEA"), Just("Eg$"), Just("''"), Just("\"\""), Just("1 2 3"), Just("\"nosave now\""),
            Just("normal 1 2 3"), Just("replica 4mb 5 6 pubsub 1 1 1"), Just("127.0.0.1 -::1"), Just("\"'a b' c\""),
            Just("\"'a b'\""), Just("no one"), Just("770"), Just("50 99.12345678"), Just("'it\\'s'"), Just("default"),
            Just("\"\\x00\\xff\\n\""), Just("always"), Just("yes # no"),
        ].prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..12).prop_map(|bytes| syntax::quote(&bytes).into_bytes()),
    ];
    (name, value, "[ \t]{1,3}")
        .prop_map(|(name, value, space)| [name.as_bytes(), space.as_bytes(), &value].concat())
}

/// The lines that load on their own, as one file that loads.
fn valid_file(lines: Vec<Vec<u8>>) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        if load(&line).is_ok() {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
    }
    text
}

fn same_settings(left: &Config, right: &Config) -> Result<(), TestCaseError> {
    for id in ParameterId::ALL {
        let (left, right) = (left.settings(), right.settings());
        prop_assert_eq!(left.show(*id), right.show(*id), "{}", id.name());
        prop_assert!(left.value(*id) == right.value(*id), "{}", id.name());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_rewritten_file_means_the_same(lines in vec(line(), 0..30), crlf in any::<bool>()) {
        let mut text = valid_file(lines);
        if crlf {
            text = text.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        }
        let config = load(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let rewritten = config.rewrite(&text);
        let again = load(&rewritten).map_err(|error| TestCaseError::fail(error.to_string()))?;
        same_settings(&config, &again)?;
        prop_assert_eq!(again.rewrite(&rewritten), rewritten);
    }

    #[test]
    fn a_file_written_from_nothing_means_the_same(lines in vec(line(), 0..30)) {
        let config = load(&valid_file(lines)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for written in [config.rewrite(b""), config.rewrite_all(b""), config.rewrite_all(b"hz 20\n")] {
            let again = load(&written).map_err(|error| TestCaseError::fail(error.to_string()))?;
            same_settings(&config, &again)?;
        }
    }

    #[test]
    fn what_get_shows_set_accepts(lines in vec(line(), 0..30)) {
        let config = load(&valid_file(lines)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut other = Config::new(FACTS);
        for id in ParameterId::ALL {
            let shown = config.settings().show(*id);
            if id.parameter().access == Access::Immutable || matches!(id.parameter().kind, Kind::Addresses) {
                continue;
            }
            other.set(&[id.name().as_bytes(), &shown], true).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(other.settings().show(*id), shown);
        }
    }

    #[test]
    fn random_text_never_panics(text in vec(any::<u8>(), 0..400), lines in vec(line(), 0..10)) {
        let mut mixed = lines.join(&b'\n');
        mixed.extend_from_slice(&text);
        for text in [&text, &mixed] {
            if let Err(error) = load(text) {
                prop_assert!(!error.to_string().is_empty());
            }
            let config = Config::new(FACTS);
            let rewritten = config.rewrite(text);
            prop_assert!(rewritten.len() <= text.len() * 20 + 64);
        }
    }

    #[test]
    fn random_arguments_never_panic(words in vec(vec(any::<u8>(), 0..12), 0..8)) {
        if let Invocation::Serve(command_line) = Invocation::parse(&words) {
            let _ = Config::load(&command_line, &mut Files::default(), FACTS);
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut config = Config::new(FACTS);
        let _ = config.set(&words, true);
        let _ = config.get(&words);
    }

    #[test]
    fn quoted_words_split_back(words in vec(vec(any::<u8>(), 0..20), 0..6)) {
        let quoted: Vec<String> = words.iter().map(|word| syntax::quote(word)).collect();
        prop_assert_eq!(syntax::split(quoted.join(" ").as_bytes()), Some(words.clone()));
        let plain: Vec<String> = words.iter().map(|word| syntax::quote_if_needed(word)).collect();
        prop_assert_eq!(syntax::split(plain.join(" ").as_bytes()), Some(words));
    }
}
