//! Draws the course of one or several soak runs as an SVG file: latencies, files and memory over time.

use std::{fmt::Write as _, time::Duration};

use slate_bench_harness::{
    format,
    number::{count, float, nanoseconds, ratio},
};

use super::soak::{Course, Point};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 50.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 45.0;

/// Okabe and Ito's palette, which is distinguishable with color blindness.
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#787878"];

/// A panel: its title, a function that returns the value of an interval, and one that formats the value.
struct Panel {
    title: &'static str,
    of: fn(&Point) -> f64,
    write: fn(f64) -> String,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

fn time(of: Duration) -> f64 {
    float(nanoseconds(of))
}

fn write_time(value: f64) -> String {
    format::duration(Duration::from_secs_f64(value / 1e9))
}

fn write_bytes(value: f64) -> String {
    format::bytes(slate_bench_harness::number::rounded(value))
}

const PANELS: [Panel; 8] = [
    Panel { title: "reads, median", of: |at| time(at.reads.median), write: write_time, scale: Scale::Logarithmic },
    Panel {
        title: "reads, 99th percentile",
        of: |at| time(at.reads.p99),
        write: write_time,
        scale: Scale::Logarithmic,
    },
    Panel { title: "reads, longest", of: |at| time(at.reads.longest), write: write_time, scale: Scale::Logarithmic },
    Panel { title: "writes, median", of: |at| time(at.writes.median), write: write_time, scale: Scale::Logarithmic },
    Panel {
        title: "writes, 99th percentile",
        of: |at| time(at.writes.p99),
        write: write_time,
        scale: Scale::Logarithmic,
    },
    Panel { title: "writes, longest", of: |at| time(at.writes.longest), write: write_time, scale: Scale::Logarithmic },
    Panel { title: "files", of: |at| float(at.files), write: write_bytes, scale: Scale::Linear },
    Panel { title: "resident memory", of: |at| float(at.memory), write: write_bytes, scale: Scale::Linear },
];

/// Returns the chart as SVG.
pub fn svg(courses: &[Course]) -> String {
    let height = TOP + float(count(PANELS.len())) * (PANEL + GAP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut x = LEFT;
    for (course, colour) in courses.iter().zip(COLOURS.iter().cycle()) {
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"14\" width=\"12\" height=\"8\" fill=\"{colour}\"/>");
        let name = course.name.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(out, "<text x=\"{}\" y=\"22\">{name}</text>", x + 17.0);
        x += 40.0 + 8.0 * float(count(course.name.chars().count()));
    }
    let longest = courses.iter().map(|course| course.interval.as_secs_f64() * float(count(course.points.len())));
    let end = longest.fold(1.0, f64::max);
    for (number, panel) in PANELS.iter().enumerate() {
        draw(&mut out, panel, courses, end, TOP + float(count(number)) * (PANEL + GAP));
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, panel: &Panel, courses: &[Course], end: f64, top: f64) {
    let place = |value: f64| match panel.scale {
        Scale::Linear => value,
        Scale::Logarithmic => value.max(1.0).log10(),
    };
    let values = courses.iter().flat_map(|course| &course.points).map(panel.of);
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let low = if panel.scale == Scale::Linear { 0.0 } else { low.max(1.0).min(high.max(1.0)) };
    let span = (place(high) - place(low)).max(0.1);
    let y = |value: f64| top + PANEL - (place(value) - place(low)) / span * PANEL;
    let x = |seconds: f64| LEFT + seconds / end * (WIDTH - LEFT - 20.0);
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>", top - 6.0, panel.title);
    for value in [low, high] {
        let (y, label) = (y(value), (panel.write)(value));
        let _ =
            writeln!(out, "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>", WIDTH - 20.0);
        let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 6.0, y + 4.0);
    }
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{:.1}\">0 s</text>", top + PANEL + 14.0);
    let last = format!("{end:.0} s");
    let _ =
        writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{last}</text>", WIDTH - 20.0, top + PANEL + 14.0);
    for (course, colour) in courses.iter().zip(COLOURS.iter().cycle()) {
        let points = course.points.iter().enumerate().map(|(number, point)| {
            let seconds = course.interval.as_secs_f64() * float(count(number + 1));
            format!("{:.1},{:.1}", x(seconds), y((panel.of)(point)))
        });
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
    }
}

/// Returns a table with a line for each run: the medians of the first and the last third of the intervals.
pub fn table(courses: &[Course]) -> String {
    let mut out = String::from("| | first third | last third | last / first |\n|---|---:|---:|---:|\n");
    for course in courses {
        for panel in &PANELS {
            let third = course.points.len().div_ceil(3);
            let median = |part: Option<&[Point]>| {
                let mut values: Vec<f64> = part.unwrap_or_default().iter().map(panel.of).collect();
                values.sort_by(f64::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or_default()
            };
            let first = median(course.points.get(..third));
            let last = median(course.points.get(course.points.len().saturating_sub(third)..));
            let factor = format::factor(ratio(last, first));
            let _ = writeln!(
                out,
                "| {}: {} | {} | {} | {factor} |",
                course.name,
                panel.title,
                (panel.write)(first),
                (panel.write)(last)
            );
        }
    }
    out
}
