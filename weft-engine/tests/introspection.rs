//! COMMAND LIST: what it names.

mod in_process;

use std::collections::BTreeSet;

use in_process::Local;

fn list(local: &mut Local, arguments: &str) -> Vec<String> {
    let reply = local.send(format!("COMMAND LIST {arguments}\r\n").as_bytes());
    let text = String::from_utf8(reply).unwrap();
    let (head, names) = text.split_once("\r\n").unwrap();
    let names: Vec<String> = names
        .split("\r\n")
        .filter(|line| !line.is_empty() && !line.starts_with('$'))
        .map(str::to_owned)
        .collect();
    assert_eq!(head, format!("*{}", names.len()));
    names
}

#[test]
fn commands_and_subcommands_are_listed_once_each() {
    let mut local = Local::new();
    let rows = local.engine.commands.rows();
    let expected: BTreeSet<String> = rows
        .iter()
        .flat_map(|row| {
            let subcommands = row
                .subcommands
                .iter()
                .map(|sub| format!("{}|{}", row.name, sub.name));
            std::iter::once(row.name.to_owned()).chain(subcommands)
        })
        .collect();
    let listed = list(&mut local, "");
    assert_eq!(listed.len(), expected.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn filters_look_at_subcommands_too() {
    let mut local = Local::new();
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    assert_eq!(
        sorted(list(&mut local, "FILTERBY PATTERN CONFIG|*RE*")),
        ["config|resetstat", "config|rewrite"]
    );
    assert_eq!(
        sorted(list(&mut local, "FILTERBY PATTERN config*")),
        [
            "config",
            "config|get",
            "config|help",
            "config|resetstat",
            "config|rewrite",
            "config|set"
        ]
    );
    assert!(list(&mut local, "FILTERBY ACLCAT dangerous").contains(&"config|set".to_owned()));
}
