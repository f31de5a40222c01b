//! The entry of cargo-fuzz to `../targets/record.rs`.

#![no_main]

#[path = "../targets/record.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
