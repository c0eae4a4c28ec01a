"""Counts the results of scripts/test and prints the closing line `N passed, N failed`; exits 1 if anything failed.

Every suite leaves NAME.status (its exit status) and, where it has cases, NAME.xml (JUnit). A suite that ended badly without naming a
failed case (a crash, a build that broke) counts as one failure. Skipped cases are reported, and are neither passed nor failed.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

NO_TESTS_COLLECTED = "5"  # pytest's exit status when a filter matches nothing


def count(xml):
    """(passed, names of the failed, skipped) of one JUnit file."""
    passed, failed, skipped = 0, [], 0
    for case in ElementTree.parse(xml).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname', '')}.{case.get('name')}")
        elif case.find("skipped") is not None or case.get("status") == "notrun" or case.get("result") == "skipped":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(results, filtered):
    passed, failed, skipped = 0, [], 0
    for status_file in sorted(results.glob("*.status")):
        name, status = status_file.stem, status_file.read_text().strip()
        xml = status_file.with_suffix(".xml")
        here = (0, [], 0)
        if xml.exists() and xml.stat().st_size:
            here = count(xml)
        if status != "0" and not here[1] and not (filtered and name == "pytest" and status == NO_TESTS_COLLECTED):
            here[1].append(f"{name}: ended with status {status}")
        if sum(map(lambda x: len(x) if isinstance(x, list) else x, here)):
            print(f"  {name}: {here[0]} passed, {len(here[1])} failed, {here[2]} skipped")
        passed, failed, skipped = passed + here[0], failed + here[1], skipped + here[2]
    for name in failed:
        print(f"FAILED {name}")
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or (not passed and not filtered) else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), "--filtered" in sys.argv[2:]))
