//! The entry of cargo-fuzz to `../targets/packet.rs`.

#![no_main]

#[path = "../targets/packet.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
