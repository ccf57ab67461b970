//! Progress bars on standard error. They are drawn on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(120);

/// Returns a bar over the bytes of a file; a counter if their number is not known.
pub(crate) fn bytes(length: Option<u64>, what: &str) -> ProgressBar {
    let template = match length {
        Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec}, {eta} left",
        None => "{spinner} {msg} {bytes} {binary_bytes_per_sec}",
    };
    bar(length, template, what)
}

/// Returns a bar over documents; a counter if their number is not known.
pub(crate) fn documents(length: Option<u64>, what: &str) -> ProgressBar {
    let template = match length {
        Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} {per_sec}, {eta} left",
        None => "{spinner} {msg} {human_pos} {per_sec}",
    };
    bar(length, template, what)
}

fn bar(length: Option<u64>, template: &str, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar =
        length.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style).with_message(what.to_owned());
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
    }
    bar
}
