"""Counts the results of scripts/test. The last line is `N passed, N failed, N skipped`; exits 1 if anything failed.

Every suite leaves NAME.status (its exit status) and, where it has cases, NAME.xml (JUnit). What test/suites.toml says is kept: a suite with
fewer cases than its floor (unless --filtered) and a case that was skipped but may not be on this machine count as failed. So does a suite
that ended badly without naming a failed case (a crash, a build that broke).
"""

import collections
import dataclasses
import fnmatch
import glob
import os
import pathlib
import sys
import tomllib
import xml.etree.ElementTree as ElementTree

NOT_SELECTED = "Test not selected"  # lit lists what its filter leaves out
NO_TESTS_COLLECTED = "5"  # pytest's exit status when a filter matches nothing
SLOWEST = 15


@dataclasses.dataclass
class Case:
    name: str
    result: str  # passed, failed or skipped
    seconds: float
    message: str = ""  # of a skip


def cases_of(xml):
    """The cases of one JUnit file; none when it is missing or empty."""
    if not xml.exists() or not xml.stat().st_size:
        return
    for element in ElementTree.parse(xml).getroot().iter("testcase"):
        result, message = "passed", ""
        skipped = element.find("skipped")
        if element.find("failure") is not None or element.find("error") is not None:
            result = "failed"
        elif skipped is not None or element.get("status") == "notrun" or element.get("result") == "skipped":
            result = "skipped"
            if skipped is not None:
                message = " ".join(skipped.get("message", "").split())
            if message.startswith(NOT_SELECTED):
                continue
        yield Case(f"{element.get('classname', '')}.{element.get('name')}", result, float(element.get("time") or 0), message)


def is_machine(kind):
    return bool(glob.glob(kind["path"]) if "path" in kind else os.environ.get(kind["environment"]))


def rule_of(case, expected):
    """The first rule by which a case may be skipped on this machine; null if there is none. A rule without a machine holds everywhere."""
    for rule in expected["skips"]:
        is_here = "machine" not in rule or is_machine(expected["machines"][rule["machine"]])
        if is_here and fnmatch.fnmatchcase(case.name, rule["cases"]) and fnmatch.fnmatchcase(case.message, rule.get("message", "*")):
            return rule
    return None


def judge(name, status, cases, expected, filtered):
    """(how many passed, how many were skipped, what failed) of one suite."""
    count = collections.Counter(case.result for case in cases)
    failed = [case.name for case in cases if case.result == "failed"]
    if status != "0" and not failed and not (filtered and name == "pytest" and status == NO_TESTS_COLLECTED):
        failed.append(f"{name}: ended with status {status}")
    rules = [(case, rule_of(case, expected)) for case in cases if case.result == "skipped"]
    unexpected = [case for case, rule in rules if not rule]
    failed += [f"{case.name}: skipped, which test/suites.toml does not allow here: {case.message}" for case in unexpected]
    for rule in expected["skips"]:
        times = sum(one is rule for _, one in rules)
        if times > rule.get("most", len(cases)):
            failed.append(f"{name}: {times} cases are skipped ({rule['reason']}); test/suites.toml expects at most {rule['most']}")
    floor = expected["floors"].get(name)
    if cases and floor is None:
        failed.append(f"{name}: has no floor in test/suites.toml")
    elif floor and not filtered and len(cases) < floor:
        failed.append(f"{name}: {len(cases)} cases; test/suites.toml expects {floor}")
    return count["passed"], count["skipped"] - len(unexpected), failed


def main(results, filtered, expected):
    suites = {file.stem: (file.read_text().strip(), list(cases_of(file.with_suffix(".xml")))) for file in sorted(results.glob("*.status"))}
    passed = skipped = 0
    failed = [] if filtered else [f"{name}: did not run" for name in expected["floors"] if name not in suites]
    for name, (status, cases) in suites.items():
        here = judge(name, status, cases, expected, filtered)
        if cases or here[2]:
            print(f"  {name}: {here[0]} passed, {len(here[2])} failed, {here[1]} skipped")
        passed, skipped, failed = passed + here[0], skipped + here[1], failed + here[2]
    slowest = sorted(((case.seconds, name, case.name) for name, (_, cases) in suites.items() for case in cases), reverse=True)[:SLOWEST]
    if slowest:
        print("slowest:")
    for seconds, name, case in slowest:
        print(f"  {seconds:6.1f} s  {name}: {case}")
    for name in failed:
        print(f"FAILED {name}")
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed or (not passed and not filtered) else 0


if __name__ == "__main__":
    rules = tomllib.loads((pathlib.Path(__file__).parent / "suites.toml").read_text())
    sys.exit(main(pathlib.Path(sys.argv[1]), "--filtered" in sys.argv[2:], rules))
