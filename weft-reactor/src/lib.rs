//! Sockets, timers and wake-ups behind one trait.
