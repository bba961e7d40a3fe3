//! Threads, sockets, files and signals around the engine.

fn main() {}
