//! Draws times as bars in an SVG file: one group per operation, one bar per series, on a logarithmic scale.

use std::{path::Path, time::Duration};

use plotters::{
    backend::SVGBackend,
    drawing::{DrawingArea, IntoDrawingArea},
    element::{PathElement, Rectangle, Text},
    style::{BLACK, Color, IntoFont, RGBColor, TextStyle, WHITE, text_anchor},
};

use crate::{
    Result, format,
    number::{float, nanoseconds, rounded},
};

/// The content of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// Names of the series: the bars of each group.
    pub series: Vec<String>,
    /// Groups from top to bottom.
    pub groups: Vec<Group>,
}

/// A group of bars.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Name of the operation.
    pub label: String,
    /// One time per series; `None` without a measurement.
    pub times: Vec<Option<Duration>>,
}

/// Okabe and Ito's palette, which is distinguishable with color blindness.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(120, 120, 120),
];
const BAR: i32 = 14;
const GAP: i32 = 10;
const TOP: i32 = 70;
const LEFT: i32 = 400;
const PLOT: i32 = 620;
const RIGHT: i32 = 90;
const FONT: &str = "sans-serif";
/// The backend draws a font of size `n` with 0.8 `n` pixels.
const TITLE: i32 = 22;
const LABEL: i32 = 16;
const SMALL: i32 = 13;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl Chart {
    /// Draws the chart to a file.
    ///
    /// # Errors
    /// Fails if there is nothing to draw or the file cannot be written.
    pub fn draw(&self, path: &Path) -> Result<()> {
        let scale = Scale::of(self.groups.iter().flat_map(|group| group.times.iter().flatten().copied()))
            .ok_or("there are no times to draw")?;
        let bottom = self.groups.iter().fold(TOP, |y, group| y + self.height(group));
        let size = ((LEFT + PLOT + RIGHT).unsigned_abs(), (bottom + GAP).unsigned_abs());
        // The backend's error does not say why a file could not be written.
        std::fs::write(path, "").map_err(|error| format!("{}: {error}", path.display()))?;
        let area = SVGBackend::new(path, size).into_drawing_area();
        let drawn = self.draw_on(&area, &scale, bottom).and_then(|()| Ok(area.present()?));
        drawn.map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn height(&self, group: &Group) -> i32 {
        BAR * small(group.times.len().min(self.series.len())) + GAP
    }

    fn draw_on(&self, area: &Area<'_>, scale: &Scale, bottom: i32) -> Result<()> {
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title.clone(), (10, 10), (FONT, TITLE).into_font()))?;
        self.draw_legend(area)?;
        for power in scale.low..=scale.high {
            let x = scale.x(10_f64.powi(power));
            area.draw(&PathElement::new([(x, TOP), (x, bottom)], BLACK.mix(0.15)))?;
            let label = format::duration(Duration::from_nanos(rounded(10_f64.powi(power))));
            let label = label.replace(".00", "").replace(".0", "");
            area.draw(&Text::new(label, (x + 3, TOP - 14), (FONT, SMALL).into_font()))?;
        }
        let right = TextStyle::from((FONT, LABEL).into_font())
            .pos(text_anchor::Pos::new(text_anchor::HPos::Right, text_anchor::VPos::Top));
        let mut y = TOP;
        for group in &self.groups {
            area.draw(&Text::new(group.label.clone(), (LEFT - 8, y), right.clone()))?;
            for ((time, _), colour) in group.times.iter().zip(&self.series).zip(COLOURS.iter().cycle()) {
                if let Some(time) = time {
                    let x = scale.x(float(nanoseconds(*time)));
                    area.draw(&Rectangle::new([(LEFT, y), (x.max(LEFT + 1), y + BAR - 2)], colour.filled()))?;
                    area.draw(&Text::new(format::duration(*time), (x + 4, y), (FONT, SMALL).into_font()))?;
                }
                y += BAR;
            }
            y += GAP;
        }
        Ok(())
    }

    fn draw_legend(&self, area: &Area<'_>) -> Result<()> {
        let mut x = 10;
        for (name, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            area.draw(&Rectangle::new([(x, 38), (x + 12, 46)], colour.filled()))?;
            area.draw(&Text::new(name.clone(), (x + 17, 35), (FONT, LABEL).into_font()))?;
            // Approximate width of a letter; the font's metrics are not available.
            x += 40 + 7 * small(name.chars().count());
        }
        Ok(())
    }
}

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or_default()
}

/// The range of the time axis: the powers of ten, in nanoseconds, below and above all times.
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn of(times: impl Iterator<Item = Duration>) -> Option<Self> {
        let powers = times.map(|time| float(nanoseconds(time).max(1)).log10());
        let (low, high) = powers.fold(None, |range: Option<(f64, f64)>, power| {
            Some(range.map_or((power, power), |(low, high)| (low.min(power), high.max(power))))
        })?;
        let (low, high) = (whole(low.floor()), whole(high.ceil()));
        Some(Self { low, high: high.max(low + 1) })
    }

    fn x(&self, nanoseconds: f64) -> i32 {
        let share = (nanoseconds.max(1.0).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        LEFT + whole((share.max(0.0) * f64::from(PLOT)).round())
    }
}

fn whole(number: f64) -> i32 {
    i32::try_from(rounded(number.max(0.0))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_bar_for_each_time_and_a_label_for_each_group() {
        let time = |microseconds| Some(Duration::from_micros(microseconds));
        let chart = Chart {
            title: "slate memory".into(),
            series: vec!["10k".into(), "100k".into()],
            groups: vec![
                Group { label: "scan".into(), times: vec![time(1_300), time(14_000)] },
                Group { label: "tags <&>".into(), times: vec![time(3), None] },
            ],
        };
        let path = std::env::temp_dir().join(format!("slate-bench-chart-{}.svg", std::process::id()));
        chart.draw(&path).unwrap();
        let drawn = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for text in ["slate memory", "scan", "1.30 ms", "14.0 ms", "3.00 µs", "&lt;&amp;&gt;"] {
            assert!(drawn.contains(text), "{text} in {drawn}");
        }
        // The background, two legend entries, three bars.
        assert_eq!(drawn.matches("<rect").count(), 6);
    }

    #[test]
    fn bars_grow_by_powers_of_ten() {
        let scale = Scale::of([1_000, 90_000_000].into_iter().map(Duration::from_nanos)).unwrap();
        assert_eq!((scale.low, scale.high), (3, 8));
        assert_eq!((scale.x(1e3), scale.x(1e8)), (LEFT, LEFT + PLOT));
        assert_eq!(scale.x(1e4) - scale.x(1e3), scale.x(1e6) - scale.x(1e5));
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert!(Chart::default().draw(Path::new("/nowhere/chart.svg")).is_err());
    }
}
