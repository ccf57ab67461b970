//! The graph of dependencies between transactions, and its cycles.

use std::collections::BTreeMap;

use slate_core::Isolation;

use super::history::Executed;
use crate::Broken;

/// Why a transaction comes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// The first transaction wrote, or was acknowledged, before the other one read, wrote or began.
    Before,
    /// The first transaction read what the other one then overwrote.
    ReadWrite,
}

/// The edges of each transaction, by its position.
type Graph = Vec<Vec<(usize, Edge)>>;

/// Returns the promises of this isolation level that the history breaks.
pub(super) fn check(executed: &Executed, isolation: Isolation) -> Broken {
    let mut broken = Broken::new();
    let graph = graph(executed, &mut broken);
    if !broken.is_empty() {
        return broken;
    }
    if let Some(cycle) = cycle(&graph, isolation) {
        let steps: Vec<String> = cycle
            .iter()
            .map(|(at, edge)| format!("{:?} {edge:?}", executed.committed.get(*at).unwrap_or(&Default::default())))
            .collect();
        broken.push(format!("a cycle that {isolation:?} isolation does not allow:\n  {}", steps.join("\n  ")));
    }
    broken
}

fn graph(executed: &Executed, broken: &mut Broken) -> Graph {
    let committed = &executed.committed;
    let mut graph: Graph = vec![Vec::new(); committed.len()];
    let mut edge = |from: usize, to: usize, kind: Edge| {
        if let Some(edges) = graph.get_mut(from).filter(|_| from != to) {
            edges.push((to, kind));
        }
    };
    // The last transaction read the final lists, which show the order of all appends.
    let Some(last) = committed.iter().max_by_key(|transaction| transaction.began) else { return graph };
    let orders: BTreeMap<i32, &Vec<i64>> = last.read.iter().map(|(list, numbers)| (*list, numbers)).collect();
    let mut writers: BTreeMap<i64, usize> = BTreeMap::new();
    for (at, transaction) in committed.iter().enumerate() {
        for (list, numbers) in &transaction.appended {
            for number in numbers {
                writers.insert(*number, at);
                let times = orders.get(list).map_or(0, |order| order.iter().filter(|there| *there == number).count());
                if times != 1 {
                    broken.push(format!("{number} was committed to list {list}, which has it {times} times"));
                }
            }
        }
    }
    for (list, order) in &orders {
        for pair in order.windows(2) {
            if let [Some(before), Some(after)] = [0, 1].map(|at| pair.get(at).and_then(|number| writers.get(number))) {
                edge(*before, *after, Edge::Before);
            }
        }
        if let Some(number) = order.iter().find(|number| !writers.contains_key(number)) {
            broken.push(format!("list {list} has {number}, which was not committed"));
        }
    }
    for (at, transaction) in committed.iter().enumerate() {
        for (list, read) in &transaction.read {
            let Some(order) = orders.get(list) else { continue };
            if !order.starts_with(read) {
                broken.push(format!("list {list} was read as {read:?}, its order is {order:?}"));
                continue;
            }
            if let Some(writer) = read.last().and_then(|number| writers.get(number)) {
                edge(*writer, at, Edge::Before);
            }
            if let Some(writer) = order.get(read.len()).and_then(|number| writers.get(number)) {
                edge(at, *writer, Edge::ReadWrite);
            }
        }
        let later = committed.iter().enumerate().filter(|(_, other)| transaction.acknowledged < other.began);
        later.for_each(|(other, _)| edge(at, other, Edge::Before));
    }
    graph
}

/// Returns a cycle that the isolation level does not allow, if there is one: the transactions, each with the edge to the next one.
fn cycle(graph: &Graph, isolation: Isolation) -> Option<Vec<(usize, Edge)>> {
    // A state is a transaction and the kind of edge by which it was reached. Under snapshot isolation no path has two read-write edges
    // one after the other, so each remaining cycle is forbidden.
    let state = |at: usize, by: Edge| 2 * at + usize::from(by == Edge::ReadWrite);
    let mut colours = vec![Colour::New; 2 * graph.len()];
    (0..graph.len()).find_map(|start| {
        let mut path = Vec::new();
        visit(graph, isolation, start, Edge::Before, &mut colours, &mut path, &state)
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    New,
    OnPath,
    Done,
}

fn visit(
    graph: &Graph,
    isolation: Isolation,
    at: usize,
    by: Edge,
    colours: &mut [Colour],
    path: &mut Vec<(usize, Edge)>,
    state: &impl Fn(usize, Edge) -> usize,
) -> Option<Vec<(usize, Edge)>> {
    match colours.get(state(at, by)) {
        Some(Colour::New) => {}
        Some(Colour::OnPath) => {
            let start = path.iter().position(|step| *step == (at, by)).unwrap_or_default();
            return Some(path.split_off(start));
        }
        Some(Colour::Done) | None => return None,
    }
    let colour = |colour: Colour, colours: &mut [Colour]| {
        if let Some(there) = colours.get_mut(state(at, by)) {
            *there = colour;
        }
    };
    colour(Colour::OnPath, colours);
    path.push((at, by));
    for (to, edge) in graph.get(at).into_iter().flatten() {
        if isolation == Isolation::Snapshot && by == Edge::ReadWrite && *edge == Edge::ReadWrite {
            continue;
        }
        if let Some(cycle) = visit(graph, isolation, *to, *edge, colours, path, state) {
            return Some(cycle);
        }
    }
    path.pop();
    colour(Colour::Done, colours);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::history::Committed;

    /// A transaction that reads one list and appends to another.
    fn transaction(times: (u64, u64), read: &[(i32, &[i64])], appended: &[(i32, i64)]) -> Committed {
        Committed {
            began: times.0,
            acknowledged: times.1,
            appended: appended.iter().map(|(list, number)| (*list, vec![*number])).collect(),
            read: read.iter().map(|(list, numbers)| (*list, numbers.to_vec())).collect(),
        }
    }

    fn found(committed: Vec<Committed>) -> [bool; 2] {
        let executed = Executed { committed, ..Executed::default() };
        [Isolation::Snapshot, Isolation::Serializable].map(|isolation| !check(&executed, isolation).is_empty())
    }

    #[test]
    fn write_skew_is_allowed_under_snapshot_isolation_only() {
        let skew = vec![
            transaction((0, 3), &[(1, &[])], &[(2, 10)]),
            transaction((1, 4), &[(2, &[])], &[(1, 20)]),
            transaction((5, 6), &[(1, &[20]), (2, &[10])], &[]),
        ];
        assert_eq!(found(skew), [false, true]);
    }

    #[test]
    fn other_anomalies_are_found_under_both() {
        let lost_update = vec![
            transaction((0, 3), &[(1, &[])], &[(1, 10)]),
            transaction((1, 4), &[(1, &[])], &[(1, 20)]),
            transaction((5, 6), &[(1, &[10, 20])], &[]),
        ];
        assert_eq!(found(lost_update), [true, true]);
        let stale_read = vec![
            transaction((0, 1), &[], &[(1, 10)]),
            transaction((2, 3), &[(1, &[])], &[]),
            transaction((4, 5), &[(1, &[10])], &[]),
        ];
        assert_eq!(found(stale_read), [true, true]);
        let torn_read = vec![
            transaction((0, 3), &[], &[(1, 10), (2, 11)]),
            transaction((1, 4), &[(1, &[10]), (2, &[])], &[]),
            transaction((5, 6), &[(1, &[10]), (2, &[11])], &[]),
        ];
        assert_eq!(found(torn_read), [true, true]);
        let lost_append = vec![transaction((0, 1), &[], &[(1, 10)]), transaction((2, 3), &[(1, &[])], &[])];
        assert_eq!(found(lost_append), [true, true]);
        let dirty_read = vec![transaction((0, 1), &[(1, &[99])], &[]), transaction((2, 3), &[(1, &[99])], &[])];
        assert_eq!(found(dirty_read), [true, true]);
    }

    #[test]
    fn a_serial_history_is_right() {
        let serial = vec![
            transaction((0, 1), &[(1, &[])], &[(1, 10)]),
            transaction((2, 3), &[(1, &[10])], &[(2, 20)]),
            transaction((4, 5), &[(1, &[10]), (2, &[20])], &[]),
        ];
        assert_eq!(found(serial), [false, false]);
    }
}
