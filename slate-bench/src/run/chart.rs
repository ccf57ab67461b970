//! Draws a report as a chart with one bar per size.

use slate_bench_harness::{
    Report,
    chart::{Chart, Group},
    format,
};

/// Returns a chart of a report's medians with one series per size. Rows of owned results are left out.
pub fn of(report: &Report) -> Chart {
    let mut sizes: Vec<Option<u64>> = report.sections.iter().map(|section| section.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut groups: Vec<Group> = Vec::new();
    for section in &report.sections {
        for row in section.rows.iter().filter(|row| !row.samples.is_empty()) {
            if row.variant.as_deref() == Some(crate::Consume::Owned.name()) {
                continue;
            }
            if !groups.iter().any(|group| group.label == row.name) {
                groups.push(Group { label: row.name.clone(), times: vec![None; sizes.len()] });
            }
            let group = groups.iter_mut().find(|group| group.label == row.name);
            let place = sizes.iter().position(|size| *size == section.size);
            if let Some(time) = group.zip(place).and_then(|(group, place)| group.times.get_mut(place)) {
                *time = Some(row.samples.median());
            }
        }
    }
    let named =
        |size: &Option<u64>| size.map_or_else(|| "all".into(), |size| format!("{} records", format::size(size)));
    Chart {
        title: format!("{} {}", report.about.name, report.about.version),
        series: sizes.iter().map(named).collect(),
        groups,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slate_bench_harness::{About, Row};

    use super::*;

    #[test]
    fn each_size_is_a_series_and_owned_rows_are_left_out() {
        let mut report = Report::begin("slate-bench", About::default(), 42);
        let row = |milliseconds| Row {
            samples: [Duration::from_millis(milliseconds)].into_iter().collect(),
            ..Row::new("scan").variant("lent")
        };
        report.push("Queries", Some(100), row(1));
        report.push("Queries", Some(100), Row { variant: Some("owned".into()), ..row(2) });
        report.push("Queries", Some(1_000), row(10));
        let chart = of(&report);
        assert_eq!(chart.series, ["100 records", "1k records"]);
        let times = [1, 10].map(|milliseconds| Some(Duration::from_millis(milliseconds)));
        assert_eq!(chart.groups, [Group { label: "scan".into(), times: times.to_vec() }]);
    }
}
