#!/usr/bin/env python3
"""Answers the aggregations of slate-bench with DuckDB, as a process of its own, and writes the report that `compare` joins.

Needs Python 3 and DuckDB (`pip install duckdb`). The records and the SQL come from `slate-bench-questions`, whose path is in
SLATE_BENCH_QUESTIONS. A program whose name ends in `typed` stores columns with types, any other stores one column of JSON.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time

import duckdb

SECTION = "Aggregation"


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="100000")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("--typed", action="store_true", default=os.path.basename(sys.argv[0]).endswith("typed"))
    # Options of the other programs that mean nothing here: there is one user, in memory, on the core that compare chose.
    for ignored in ("--users", "--folder", "--core"):
        parser.add_argument(ignored)
    parser.add_argument("--clock", choices=["wall", "running"], default="wall",
                        help="running: the time of the processor, without that in which the process was preempted")
    return parser.parse_args()


def inputs(records, seed):
    """Returns the questions, the companies and the records."""
    program = os.environ.get("SLATE_BENCH_QUESTIONS", "slate-bench-questions")
    command = [program, "--records", str(records), "--seed", str(seed)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    parsed = [json.loads(line) for line in lines]
    return ([line for line in parsed if "question" in line],
            [line["company"] for line in parsed if "company" in line],
            [line["record"] for line in parsed if "record" in line])


def load(connection, typed, companies, records):
    """Creates the tables in memory."""
    tables = {"records_1": records, "companies": companies, "companies_unindexed": companies}
    for table, rows in tables.items():
        if not typed:
            connection.execute(f"CREATE TABLE {table} (_id BIGINT PRIMARY KEY, doc JSON)")
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", [[row["_id"], json.dumps(row)] for row in rows])
            continue
        types = {"tags": "VARCHAR[]", "contacts_count": "INTEGER", "code": "INTEGER", "last_contacted_at": "BIGINT"}
        names = [name for name in rows[0] if name != "_id"]
        columns = ", ".join(f"{name} {types.get(name, 'VARCHAR')}" for name in names)
        connection.execute(f"CREATE TABLE {table} (_id BIGINT PRIMARY KEY, {columns})")
        places = ", ".join("?" for _ in range(len(names) + 1))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})",
                               [[row["_id"], *(row[name] for name in names)] for row in rows])


def difference(found, expected):
    """Describes the first difference between two results in any order, None if there is none."""
    # Null before numbers before strings.
    rank = lambda cell: (0, 0) if cell is None else (2, cell) if isinstance(cell, str) else (1, float(cell))
    found = sorted((list(row) for row in found), key=lambda row: [rank(cell) for cell in row])
    expected = sorted(expected, key=lambda row: [rank(cell) for cell in row])
    same = lambda a, b: a == b if a is None or b is None or isinstance(b, str) else math.isclose(a, b, rel_tol=1e-9)
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    for a, b in zip(found, expected):
        if len(a) != len(b) or not all(same(x, y) for x, y in zip(a, b)):
            return f"{a} instead of {b}"
    return None


def measure(connection, sql, expected, runs, clock):
    """Runs the query once to check it, then until it ran often and long enough, as the other programs do."""
    wrong = difference(connection.execute(sql).fetchall(), expected)
    row = {"verdict": {"wrong": wrong} if wrong else "right", "samples": [], "expected": len(expected)}
    spent = 0
    while len(row["samples"]) < (runs if spent < 5e9 else min(runs, 5)) or (spent < 4e6 * runs and len(row["samples"]) < 20 * runs):
        begin = clock()
        found = connection.execute(sql).fetchall()
        taken = clock() - begin
        row["samples"].append(taken)
        row["count"] = len(found)
        spent += taken
    return row


def machine():
    named = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": named[0] if named else "unknown processor", "cores": len(os.sched_getaffinity(0)),
            "memory": memory, "system": f"{platform.system().lower()} {platform.machine()}"}


def main():
    chosen = options()
    clock = time.process_time_ns if chosen.clock == "running" else time.perf_counter_ns
    form = "typed columns" if chosen.typed else "JSON"
    report = {
        "bench": "slate-bench",
        "about": {"name": f"duckdb {'typed' if chosen.typed else 'json'}", "version": duckdb.__version__,
                  "settings": f"in memory, one thread, {form}, results fetched by Python"},
        "machine": machine(), "date": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]], "seed": chosen.seed, "sections": [],
    }
    for size in (int(size) for size in chosen.records.split(",")):
        questions, companies, records = inputs(size, chosen.seed)
        connection = duckdb.connect(config={"threads": 1})
        load(connection, chosen.typed, companies, records)
        rows = []
        for question in questions:
            name = question["question"]
            if chosen.only and not any(only.lower() in f"{SECTION} {name}".lower() for only in chosen.only):
                continue
            sql = question["typed" if chosen.typed else "json"]
            rows.append({"name": name, **measure(connection, sql, question["answer"], chosen.runs, clock)})
            print(f"{name}: {statistics.median(rows[-1]['samples']) / 1e6:.2f} ms, {rows[-1]['verdict']}")
        report["sections"].append({"title": SECTION, "size": size, "rows": rows})
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump(report, file)
    return any(row["verdict"] != "right" for section in report["sections"] for row in section["rows"])


if __name__ == "__main__":
    sys.exit(main())
