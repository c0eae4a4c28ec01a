"""test/count_results.py: what scripts/test counts as failed, and its last line."""

import pytest

import count_results

RULES = {
    "floors": {"one": 1, "pytest": 1},
    "machines": {"here": {"path": "/"}, "elsewhere": {"path": "/does/not/exist"}, "offline": {"environment": "GRETA_TEST_COUNT_OFFLINE"}},
    "skips": [
        {"cases": "a.allowed*", "machine": "here", "reason": ""},
        {"cases": "a.only_there", "machine": "elsewhere", "reason": ""},
        {"cases": "*", "message": "no network*", "machine": "offline", "reason": ""},
        {"cases": "*", "message": "no such form*", "most": 1, "reason": "others have it"},
    ],
}
GOOD = '<testcase classname="a" name="good" time="1.5"/>'
BAD = '<testcase classname="a" name="bad"><failure message="no"/></testcase>'


def skipped(name, message=""):
    return f'<testcase classname="a" name="{name}"><skipped message="{message}"/></testcase>'


def count(folder, capsys, suites, filtered=False):
    for name, (status, cases) in {"pytest": ("0", GOOD), **suites}.items():
        (folder / f"{name}.status").write_text(status + "\n")
        if cases is not None:
            (folder / f"{name}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>" if cases else "")
    status = count_results.main(folder, filtered, RULES)
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "one, last_line, failure",
    [
        (("0", GOOD), "2 passed, 0 failed, 0 skipped", None),
        (("1", GOOD + BAD), "2 passed, 1 failed, 0 skipped", "FAILED a.bad"),
        (("139", GOOD), "2 passed, 1 failed, 0 skipped", "FAILED one: ended with status 139"),
        (("2", None), "1 passed, 2 failed, 0 skipped", "FAILED one: ended with status 2"),
        (("0", GOOD + skipped("allowed_here")), "2 passed, 0 failed, 1 skipped", None),
        (("0", GOOD + skipped("only_there", "no GPU")), "2 passed, 1 failed, 0 skipped", "FAILED a.only_there: skipped, which test/suites.toml does not allow here: no GPU"),
        (("0", GOOD + skipped("x", "no network")), "2 passed, 1 failed, 0 skipped", "FAILED a.x: skipped, which test/suites.toml does not allow here: no network"),
        (("0", GOOD + '<testcase classname="a" name="off" status="notrun"/>'), "2 passed, 1 failed, 0 skipped", "FAILED a.off: skipped, which test/suites.toml does not allow here: "),
        (("0", GOOD + skipped("x", "no such form")), "2 passed, 0 failed, 1 skipped", None),
        (("0", skipped("x", "no such form") * 2), "1 passed, 1 failed, 2 skipped", "FAILED one: 2 cases are skipped (others have it); test/suites.toml expects at most 1"),
        (("0", ""), "1 passed, 1 failed, 0 skipped", "FAILED one: 0 cases; test/suites.toml expects 1"),
    ],
)
def test_one_suite(tmp_path, capsys, one, last_line, failure):
    status, lines = count(tmp_path, capsys, {"one": one})
    assert lines[-1] == last_line
    assert status == (failure is not None)
    assert [line for line in lines if line.startswith("FAILED")][:1] == ([failure] if failure else [])


def test_floors(tmp_path, capsys):
    """A suite that is gone, and one that nobody expects."""
    status, lines = count(tmp_path, capsys, {"two": ("0", GOOD)})
    assert status == 1 and lines[-1] == "2 passed, 2 failed, 0 skipped"
    assert [line for line in lines if line.startswith("FAILED")] == ["FAILED one: did not run", "FAILED two: has no floor in test/suites.toml"]


def test_filtered_runs_have_no_floors(tmp_path, capsys):
    status, lines = count(tmp_path, capsys, {"pytest": ("5", None), "one": ("0", "")}, filtered=True)
    assert status == 0 and lines[-1] == "0 passed, 0 failed, 0 skipped"
    assert count(tmp_path, capsys, {"one": ("0", skipped("x", "Test not selected (--filter)"))}, filtered=True)[0] == 0
    assert count(tmp_path, capsys, {"one": ("0", skipped("x"))}, filtered=True)[0] == 1


def test_machine_named_by_its_environment(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GRETA_TEST_COUNT_OFFLINE", "1")
    assert count(tmp_path, capsys, {"one": ("0", skipped("x", "no network here"))})[1][-1] == "1 passed, 0 failed, 1 skipped"


def test_slowest_come_first(tmp_path, capsys):
    slow = "".join(f'<testcase classname="a" name="n{i}" time="{i}"/>' for i in range(30))
    lines = count(tmp_path, capsys, {"one": ("0", slow)})[1]
    shown = [line.split() for line in lines if " s  " in line]
    assert [words[-1] for words in shown] == [f"a.n{i}" for i in range(29, 14, -1)]
