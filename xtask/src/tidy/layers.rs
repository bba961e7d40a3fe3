//! The layers: the root manifest lists the crates in layer order, and a crate imports from lower layers only.

use std::collections::BTreeMap;
use std::path::Path;

/// The layer of crates around the others: no other crate may import from it.
const AROUND: &str = "Around them";

/// Checks the dependencies of every member.
pub(crate) fn check(root: &Path, complaints: &mut Vec<String>) {
    let members = match read(&root.join("Cargo.toml")) {
        Ok(text) => members(&text),
        Err(complaint) => return complaints.push(complaint),
    };
    for (name, layer) in &members {
        let text = match read(&root.join(name).join("Cargo.toml")) {
            Ok(text) => text,
            Err(complaint) => {
                complaints.push(complaint);
                continue;
            }
        };
        if !text.contains(&format!("name = \"{name}\"")) {
            complaints.push(format!(
                "{name}/Cargo.toml: the package is not called like its folder"
            ));
        }
        for dependency in dependencies(&text) {
            let Some((_, below)) = members.iter().find(|(member, _)| *member == dependency) else {
                continue;
            };
            if layer != AROUND && (below == AROUND || rank(below) >= rank(layer)) {
                complaints.push(format!(
                    "{name}/Cargo.toml: {name} ({layer}) imports {dependency} ({below}); imports point to lower layers only"
                ));
            }
        }
    }
}

/// The members that have models for loom.
pub(crate) fn crates_with_loom(root: &Path) -> Vec<String> {
    let Ok(text) = read(&root.join("Cargo.toml")) else {
        return Vec::new();
    };
    let has_loom = |name: &String| {
        read(&root.join(name).join("Cargo.toml")).is_ok_and(|text| text.contains("'cfg(loom)'"))
    };
    members(&text)
        .into_iter()
        .map(|(name, _)| name)
        .filter(has_loom)
        .collect()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// "L3" is 3; what has no number stands above everything.
fn rank(layer: &str) -> usize {
    layer
        .strip_prefix('L')
        .and_then(|number| number.parse().ok())
        .unwrap_or(usize::MAX)
}

/// The members with the comment above them, in their order.
fn members(manifest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut layer = String::new();
    let lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with("members"))
        .skip(1);
    for line in lines.take_while(|line| !line.starts_with(']')) {
        if let Some(comment) = line.strip_prefix('#') {
            comment.trim().clone_into(&mut layer);
        } else {
            let name = line.trim_end_matches(',').trim_matches('"');
            if !name.is_empty() {
                found.push((name.to_owned(), layer.clone()));
            }
        }
    }
    found
}

/// The names of all dependencies of a manifest, those of tests and of single platforms too.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names: BTreeMap<String, ()> = BTreeMap::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            // A dependency with a table of its own: [dependencies.name]
            if let Some((_, name)) = section.split_once("dependencies.") {
                names.insert(name.trim_matches('"').to_owned(), ());
            }
        } else if inside && !line.starts_with('#') {
            let name = line
                .split(['=', '.', ' '])
                .next()
                .unwrap_or_default()
                .trim_matches('"');
            if !name.is_empty() {
                names.insert(name.to_owned(), ());
            }
        }
    }
    names.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_the_layer_above_them() {
        let manifest = "[workspace]\nmembers = [\n    # L0\n    \"a\",\n    # L1\n    \"b\",\n    \"c\",\n    # Around them\n    \"x\",\n]\n";
        let expected = [("a", "L0"), ("b", "L1"), ("c", "L1"), ("x", AROUND)];
        let found = members(manifest);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, layer)| (name.as_str(), layer.as_str()))
            .collect();
        assert_eq!(found, expected);
        assert!(rank("L0") < rank("L5") && rank("L5") < rank(AROUND));
    }

    #[test]
    fn all_kinds_of_dependencies_are_found() {
        let manifest = "[package]\nname = \"z\"\n[dependencies]\na.workspace = true\nb = { path = \"../b\" }\n# c = 1\n[target.'cfg(loom)'.dependencies]\nd = \"1\"\n[dev-dependencies.e]\nversion = \"1\"\n[profile.x]\nf = 1\n";
        assert_eq!(dependencies(manifest), ["a", "b", "d", "e"]);
    }
}
