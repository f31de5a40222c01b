//! The `avocet` binary.

fn main() {}
