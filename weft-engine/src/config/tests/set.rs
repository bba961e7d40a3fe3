use super::*;

/// Values that Weft treats differently on purpose: name, value.
fn is_deviation(name: &str, value: &str) -> bool {
    match name {
        // Whether a title comes out empty depends on the process; only the template's form is checked.
        "proc-title-template" => value.contains('{'),
        // Hexadecimal digits are no percentile.
        "latency-tracking-info-percentiles" => value.starts_with("0x"),
        // Valkey refuses sizes beyond 64 bits; Redis takes them for the greatest, and Weft follows Redis.
        "slot-migration-max-failover-repl-bytes" => value == "99999999999999999999",
        _ => false,
    }
}

/// Parses a line of JSON-like quoted words, `"a" "b\u00e9" => outcome`.
fn values_and_outcome(line: &str) -> (Vec<String>, &str) {
    let (mut rest, outcome) = line.rsplit_once(" => ").expect("a line with an outcome");
    let mut values = Vec::new();
    while let Some(quoted) = rest.trim_start().strip_prefix('"') {
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        loop {
            match characters.next().expect("a closed quote") {
                (end, '"') => {
                    rest = &quoted[end + 1..];
                    break;
                }
                (_, '\\') => value.push(characters.next().expect("an escaped character").1),
                (_, character) => value.push(character),
            }
        }
        values.push(value);
    }
    (values, outcome)
}

#[test]
fn every_parameter_answers_odd_values_as_the_oracle() {
    let mut names: Vec<&str> = Vec::new();
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in include_str!("oracle_set.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        if let Some(list) = line.strip_prefix("names ") {
            names = list.split(' ').collect();
            continue;
        }
        let (values, outcome) = values_and_outcome(line);
        for name in &names {
            for value in &values {
                if is_deviation(name, value) {
                    continue;
                }
                let mut config = Config::new(FACTS);
                let found = match set(&mut config, &[name, value]) {
                    Ok(_) => {
                        let shown = get(&config, name).unwrap_or_default();
                        if shown == *value {
                            "OK".to_owned()
                        } else {
                            format!("OK {shown}")
                        }
                    }
                    Err(error) => error
                        .strip_prefix(&format!(
                            "ERR CONFIG SET failed (possibly related to argument '{name}') - "
                        ))
                        .map_or(error.clone(), str::to_owned),
                };
                if found != outcome {
                    wrong.push(format!(
                        "{name} {value:?}: expected {outcome:?}, found {found:?}"
                    ));
                }
                checked += 1;
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {checked} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(checked > 3000, "only {checked} values were checked");
}
