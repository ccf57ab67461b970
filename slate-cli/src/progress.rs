//! Progress bars on standard error. They are drawn on a terminal only.

use std::{fmt, time::Duration};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

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
        Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} {rate}, {eta} left",
        None => "{spinner} {msg} {human_pos} {rate}",
    };
    bar(length, template, what)
}

fn bar(length: Option<u64>, template: &str, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // Like `{per_sec}`, without decimals.
    let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // There is nothing left to do if this fails.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    });
    let bar =
        length.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style).with_message(what.to_owned());
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
    }
    bar
}
