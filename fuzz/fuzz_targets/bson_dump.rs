#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slate_trials::fuzz::run("bson_dump", data));
