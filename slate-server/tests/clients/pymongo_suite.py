"""What pymongo's test suite has to pass: reads the exclusions in docs/clients.md, and the results of the modules.

pymongo_suite.py modules PAGE SOURCE       prints the modules that are not excluded as a whole
pymongo_suite.py report PAGE LOGS MODULE…  prints a row for each module, and each failure that is not excluded
"""

import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

REQUIRED = 0.97


def exclusions(page):
    """Returns the patterns of excluded tests, by module: the rows of the table under the heading "Excluded tests"."""
    excluded = {}
    _, _, section = pathlib.Path(page).read_text().partition("### Excluded tests\n")
    for line in re.split(r"\n#", section)[0].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        names = re.findall(r"`([^`]+)`", cells[1]) if len(cells) == 3 else []
        for module in re.findall(r"`([^`]+)`", cells[0]):
            excluded.setdefault(module, []).extend(names)
    return excluded


def is_excluded(excluded, module, name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in excluded.get(module, []))


def modules(page, source):
    excluded = exclusions(page)
    for path in sorted(pathlib.Path(source, "test").glob("test_*.py")):
        if "*" not in excluded.get(path.stem, []):
            print(path.stem)


def report(page, logs, names):
    excluded = exclusions(page)
    total, failures = [0, 0, 0], []
    print("| module | passed | failed | excluded | skipped |\n|---|---|---|---|---|")
    for module in names:
        passed = failed = skipped = left_out = 0
        path = pathlib.Path(logs, f"{module}.xml")
        if not path.exists():
            failures.append(f"{module}: did not run to its end")
            continue
        # A test that was cut off by a signal has no class.
        for case in ElementTree.parse(path).iter("testcase"):
            if case.get("classname") is None:
                continue
            # The class, and the name without the numbers of a subtest.
            name = f"{case.get('classname').rpartition('.')[2]}.{case.get('name')}"
            if case.find("skipped") is not None:
                skipped += 1
            elif case.find("failure") is None and case.find("error") is None:
                passed += 1
            elif is_excluded(excluded, module, name):
                left_out += 1
            else:
                failed += 1
                failures.append(f"{module}: {name}")
        total = [total[0] + passed, total[1] + failed, total[2] + left_out]
        print(f"| `{module}` | {passed} | {failed} | {left_out} | {skipped} |")
    share = total[0] / max(1, total[0] + total[1])
    print("\n".join(failures))
    print(f"pymongo's suite: {total[0]:,} passed, {total[1]} failed, {total[2]} excluded by name: {share:.1%}")
    if share < REQUIRED:
        sys.exit(f"fewer than {REQUIRED:.0%} have passed")


if __name__ == "__main__":
    command, page, folder, *rest = sys.argv[1:]
    if command == "modules":
        modules(page, folder)
    else:
        report(page, folder, rest)
