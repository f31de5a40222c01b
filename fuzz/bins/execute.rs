//! The entry of cargo-fuzz to `../targets/execute.rs`.

#![no_main]

#[path = "../targets/execute.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
