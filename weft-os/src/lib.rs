//! Facts about the process and the machine.
