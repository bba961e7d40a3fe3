use super::*;

fn config() -> Config {
    Config::new(Facts { usable_cpus: 2 })
}

#[test]
fn defaults_parse() {
    let config = config();
    assert_eq!(config.settings().port(), 6379);
}
