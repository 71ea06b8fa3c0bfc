//! `flowstamp-linux`: XCP and RCP on unmodified Linux kernels.
fn main() {}
