"""scripts/test in a tree whose suites only sleep: what a run that is interrupted leaves, and what it says of a suite that fails beside pytest."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import ROOT

SLEEPS = "#!/bin/sh\necho $$ >>$PIDS\nexec sleep 60\n"
ENDS = "#!/bin/sh\nexit 0\n"
PROGRAMS = {
    "scripts/setup": ENDS,
    "scripts/vulkan-drivers": ENDS,
    "path/cmake": ENDS,
    "path/ninja": ENDS,
    "path/lit": ENDS,
    "build/bin/greta-one-test": SLEEPS,
    "build/venv/bin/python": '#!/bin/sh\ncase "$*" in *pytest*) echo $$ >>$PIDS; exec sleep 60;; esac\n',
}


@pytest.fixture
def tree(tmp_path):
    """A tree with scripts/test, and a process that runs it there."""
    for name in ("scripts/test", "scripts/lib/watched.py", "test/count_results.py", "test/suites.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, text in PROGRAMS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    site = tmp_path / "build/test/lit/lit.site.cfg.py"
    site.parent.mkdir(parents=True)
    site.write_text(f'config.llvm_tools = r"{tmp_path / "path"}"\n')
    (tmp_path / "pids").touch()
    started = []

    def start(*arguments):
        environment = os.environ | {"PATH": f"{tmp_path / 'path'}:{os.environ['PATH']}", "PIDS": str(tmp_path / "pids"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        started.append(subprocess.Popen([tmp_path / "scripts/test", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True))
        return started[0]

    yield tmp_path, start
    for one in started:
        if one.poll() is None:
            os.killpg(one.pid, signal.SIGKILL)
        one.communicate()


def sleeping(folder):
    """The suites that are still there."""
    there = []
    for word in (folder / "pids").read_text().split():
        try:
            os.kill(int(word), 0)
            there.append(int(word))
        except ProcessLookupError:
            pass
    return there


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("kind, everyone", ((signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, True)))
def test_nothing_is_left_of_a_run(tree, kind, everyone):
    """A terminal tells all of them, kill one."""
    folder, start = tree
    run = start()
    wait_for(lambda: len(sleeping(folder)) == 2)  # pytest and a suite beside it
    (os.killpg if everyone else os.kill)(run.pid, kind)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and "lit: test/lit" not in output and "results" not in output, output
    wait_for(lambda: not sleeping(folder))


def test_a_suite_beside_pytest_fails(tree):
    folder, start = tree
    for name, status in (("build/bin/greta-one-test", 3), ("build/venv/bin/python", 5)):
        (folder / name).write_text(f"#!/bin/sh\nexit {status}\n")
    run = start("word")
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and output.endswith("FAILED greta-one-test: ended with status 3\nFAILED python-package: ended with status 5\n0 passed, 2 failed, 0 skipped\n"), output
