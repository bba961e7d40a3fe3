//! What has to hold for the tree as a whole: layering, names, headers, where `unsafe` may stand, nothing of one machine.
//!
//! Every check reads files only. A complaint begins with the file it is about. Pages made from tables are compared by
//! the test kit, which can make them.

mod code;
mod files;
mod layers;
mod names;

use std::path::Path;

pub(crate) use layers::crates_with_loom;

/// Runs all checks: the number of files looked at, and the complaints.
pub(crate) fn check(root: &Path) -> (usize, Vec<String>) {
    let mut complaints = Vec::new();
    let files = match files::tracked(root) {
        Ok(files) => files,
        Err(error) => return (0, vec![format!("the list of files: {error}")]),
    };
    layers::check(root, &mut complaints);
    for file in &files {
        names::check_path(file, &mut complaints);
        let Ok(bytes) = std::fs::read(root.join(file)) else {
            // Listed, but removed from the work tree.
            continue;
        };
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        files::check_places(file, &text, &mut complaints);
        if file.ends_with(".rs") {
            files::check_header(file, &text, &mut complaints);
            names::check_modules(file, &text, &mut complaints);
            code::check_unsafe(file, &text, &mut complaints);
        }
    }
    (files.len(), complaints)
}
