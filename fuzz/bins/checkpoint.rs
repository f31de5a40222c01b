//! The entry of cargo-fuzz to `../targets/checkpoint.rs`.

#![no_main]

#[path = "../targets/checkpoint.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
