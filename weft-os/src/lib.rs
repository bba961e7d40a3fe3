//! Facts about the process and the machine it runs on.
//!
//! Owns where each fact is found (system calls, `/proc`, `/sys/fs/cgroup`) and how it is read. Knows nothing of what the
//! facts are used for: no configuration, no log. A fact the system does not give is `None`, never a guess.
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod cpu;
pub mod cpu_list;
pub mod descriptors;
pub mod load;
pub mod memory;
pub mod network;
pub mod process;
