//! The loads of published experiments, under names.
//!
//! Owns which cells and which settings of threads belong to a name.

use super::cell::{Cell, Mix};

/// A published experiment.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Loads: connections, pipeline, mix, bytes of a value.
    cells: &'static [(usize, u32, &'static str, usize)],
}

/// The settings of threads that all of them were published with.
pub const THREADS: [&str; 4] = ["1", "2", "4", "8"];

/// The name that stands for all of them.
pub const ALL: &str = "all";

/// All of them.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "threads",
        what: "200 connections, SET/GET 1:9 of 128 B",
        cells: &[(200, 1, "set:1,get:9", 128)],
    },
    Preset {
        name: "pipeline",
        what: "100 connections with pipeline 10, SET/GET 1:1 of 100 B",
        cells: &[(100, 10, "set,get", 100)],
    },
    Preset {
        name: "types",
        what: "200 connections, LPUSH/LPOP and HSET/HGETALL of 32 B, apart and together",
        cells: &[
            (200, 1, "lpush,lpop", 32),
            (200, 1, "hset,hgetall", 32),
            (200, 1, "lpush,lpop,hset,hgetall", 32),
        ],
    },
    Preset {
        name: "writers",
        what: "100, 500 and 1000 connections, SET of 32 B",
        cells: &[
            (100, 1, "set", 32),
            (500, 1, "set", 32),
            (1000, 1, "set", 32),
        ],
    },
    Preset {
        name: "gets",
        what: "GET of 3 B over 50 and 400 connections, and over 50 with pipeline 16",
        cells: &[(50, 1, "get", 3), (400, 1, "get", 3), (50, 16, "get", 3)],
    },
    Preset {
        name: "sizes",
        what: "50 connections, SET/GET 1:1 of 16 B to 100 KiB",
        cells: &[
            (50, 1, "set,get", 16),
            (50, 1, "set,get", 128),
            (50, 1, "set,get", 1 << 10),
            (50, 1, "set,get", 4 << 10),
            (50, 1, "set,get", 16 << 10),
            (50, 1, "set,get", 64 << 10),
            (50, 1, "set,get", 100 << 10),
        ],
    },
];

/// The cells of a preset; `None` if none has the name.
pub fn cells(name: &str) -> Option<Vec<Cell>> {
    let chosen: Vec<&Preset> = PRESETS
        .iter()
        .filter(|preset| name == ALL || preset.name == name)
        .collect();
    let cells = chosen.iter().flat_map(|preset| preset.cells);
    let cells = cells.map(|&(connections, pipeline, mix, value_bytes)| Cell {
        connections,
        pipeline,
        mix: Mix::parse(mix).expect("the mixes above are mixes, which a test shows"),
        value_bytes,
    });
    (!chosen.is_empty()).then(|| cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_had() {
        let mut sum = 0;
        for preset in PRESETS {
            sum += cells(preset.name).unwrap().len();
        }
        assert_eq!(cells(ALL).unwrap().len(), sum);
        assert_eq!(cells("nothing"), None);
        let first = &cells("threads").unwrap()[0];
        assert_eq!(first.to_string(), "SET/GET 1:9, 128 B, 200 connections");
    }
}
