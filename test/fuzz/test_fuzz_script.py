"""scripts/fuzz over programs that speak as libFuzzer does: it counts the inputs that they made, and what they found is a finding."""

import os
import subprocess
import tarfile

import pytest

from conftest import ROOT

# Six inputs are read, half of those asked for are made, as where a process ends early, and one is kept; `crash` ends in a finding, `abort` without.
PROGRAM = """#!/bin/sh
for word; do case $word in -runs=*) runs=${word#*=} ;; -artifact_prefix=*) prefix=${word#*=} ;; -*) ;; *) folder=${folder:-$word} ;; esac; done
echo "#6	INITED cov: 1"
touch $folder/new
echo "stat::number_of_executed_units: $((runs / 2 + 6))"
KIND
"""
KINDS = {
    "well": "exit 0",
    "crash": 'touch ${prefix}crash-1; echo "artifact_prefix; Test unit written to ${prefix}crash-1"; exit 77',
    "abort": 'echo "ERROR: no memory"; exit 1',
}


@pytest.fixture
def build(tmp_path):
    (tmp_path / "bin").mkdir()

    def add(name, kind):
        path = tmp_path / "bin" / f"greta-{name}-fuzz"
        path.write_text(PROGRAM.replace("KIND", KINDS[kind]))
        path.chmod(0o755)
        return tmp_path

    return add


def fuzz(build, *arguments):
    command = [ROOT / "scripts" / "fuzz", "run", f"--build={build}", f"--out={build}/out", "--processes=2", *arguments]
    return subprocess.run([os.fspath(c) for c in command], capture_output=True, text=True, timeout=60)


def test_inputs_are_counted_without_seeds(build):
    result = fuzz(build("config", "well"), "--inputs=1000")
    line = result.stdout.splitlines()[1]
    made = int(line.split()[1].replace(",", ""))
    assert result.returncode == 0 and 1000 <= made <= 1300 and line.endswith(" 1 kept for their coverage, 0 findings"), result.stdout + result.stderr
    assert (build("config", "well") / "out" / "record.txt").read_text() == result.stdout


def test_a_crash_is_a_finding(build):
    folder = build("gguf", "crash")
    result = fuzz(folder, "--inputs=100")
    assert result.returncode == 1 and result.stdout.splitlines()[1].endswith(" 1 findings"), result.stdout + result.stderr
    with tarfile.open(folder / "out" / "findings.tar.xz") as files:
        assert "gguf/crash-1" in files.getnames()


def test_an_end_without_an_input_is_named(build):
    result = fuzz(build("spirv", "abort"), "--inputs=100")
    assert result.returncode == 1 and "processes ended: ERROR: no memory" in result.stdout, result.stdout + result.stderr


def test_a_name_that_is_not_built(build):
    result = fuzz(build("spirv", "well"), "gguf")
    assert result.returncode == 1 and "not built in" in result.stderr and "gguf" in result.stderr
