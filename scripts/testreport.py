#!/usr/bin/env python3
"""Says how the tests of make test ended: testreport.py FOLDER

FOLDER has a file SUITE.json for each suite, what `go test -json` wrote. The report has the
suites, the slowest 20 tests, those that failed, and the sums. A test that passed only when it was run
again counts as failed.
"""
import collections
import glob
import json
import os
import sys

MODULE = "github.com/coxswain-sched/coxswain/"


def read(folder):
    """Returns for each (suite, package, test) its outcomes and its longest time."""
    outcomes, took = collections.defaultdict(list), collections.defaultdict(float)
    for name in sorted(glob.glob(os.path.join(folder, "*.json"))):
        suite = os.path.basename(name)[:-5]
        for line in open(name, encoding="utf8", errors="replace"):
            try:
                event = json.loads(line)
            except ValueError:
                continue  # what a program printed
            if event.get("Action") in ("pass", "fail", "skip") and event.get("Test"):
                key = suite, event["Package"].removeprefix(MODULE), event["Test"]
                outcomes[key].append(event["Action"])
                took[key] = max(took[key], event.get("Elapsed", 0))
    return outcomes, took


def slowest(took, count):
    """The slowest tests, without those whose time is that of a part of theirs."""
    longest = collections.defaultdict(float)
    for (suite, package, test), seconds in took.items():
        while "/" in test:
            test = test.rpartition("/")[0]
            longest[suite, package, test] = max(longest[suite, package, test], seconds)
    own = {key: seconds for key, seconds in took.items() if seconds > 1.25 * longest.get(key, 0)}
    return sorted(own.items(), key=lambda item: -item[1])[:count]


def main(folder):
    outcomes, took = read(folder)
    suites = os.path.join(folder, "suites")
    if os.path.exists(suites):
        print("suites:")
        print(open(suites, encoding="utf8").read(), end="")
    print("slowest tests:")
    for (suite, package, test), seconds in slowest(took, 20):
        print(f"{seconds:8.1f} s  {suite}: {package} {test}")
    # The failed ones come last: whoever sees only the end of a run wants these.
    failed = {key for key, all in outcomes.items() if "fail" in all}
    again = {key for key in failed if outcomes[key][-1] == "pass"}
    for title, keys in ("failed, and passed when run again (a defect, see CONTRIBUTING.md):", again), ("failed:", failed - again):
        leaves = [k for k in sorted(keys) if not any(o[:2] == k[:2] and o[2].startswith(k[2] + "/") for o in keys)]
        if leaves:
            print(title)
            for key in leaves:
                print("   ", *key)
    ends = collections.Counter("failed" if key in failed else {"pass": "passed", "skip": "skipped"}[all[-1]] for key, all in outcomes.items())
    print(f"{ends['passed']} passed, {ends['failed']} failed, {ends['skipped']} skipped")


main(sys.argv[1])
