#!/usr/bin/env python3
"""Prints the medians of the measurements of `compare` as a table: operations a second, and the latency that 99 % do not exceed."""

import collections
import json
import statistics
import sys


def main():
    measured = collections.defaultdict(list)
    names = []
    with open(sys.argv[1]) as lines:
        for line in lines:
            one = json.loads(line)
            workload = one["workload"].split(":")[0]
            measured[(workload, one["connections"], one["name"])].append(one)
            if one["name"] not in names:
                names.append(one["name"])
    print("| workload | connections |", " | ".join(names), "|")
    print("|---|---:|" + "---:|" * len(names))
    rows = sorted({(workload, connections) for workload, connections, _ in measured})
    for workload, connections in rows:
        cells = []
        for name in names:
            rounds = measured.get((workload, connections, name))
            if not rounds:
                cells.append("–")
                continue
            per_second = statistics.median(one["per_second"] for one in rounds)
            p99 = statistics.median(one["p99_us"] for one in rounds)
            cells.append(f"{per_second:,.0f}/s, {p99:,.0f} µs")
        print(f"| {workload} | {connections} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
