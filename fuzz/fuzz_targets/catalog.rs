#![no_main]

libfuzzer_sys::fuzz_target!(
    // libFuzzer's hook would end the process at each panic of redb over damaged bytes. Slate catches these; one that it does not catch
    // still ends the process.
    init: drop(std::panic::take_hook()),
    |data: &[u8]| slate_trials::fuzz::run("catalog", data)
);
