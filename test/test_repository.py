"""Rules the repository keeps about itself: formatting, script syntax, file size, generated pages and tables."""

import subprocess
import sys

import pytest

from conftest import ROOT

CPP = (".cpp", ".h", ".c", ".hpp")


def tracked(*suffixes):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [n for n in names if n.endswith(suffixes) and (ROOT / n).exists()]


def test_clang_format():
    sources = tracked(*CPP)
    run = subprocess.run(["clang-format-22", "--dry-run", "-Werror", *sources], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:4000]


def test_scripts_parse():
    scripts = [p for p in (*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run") if p.is_file() and p.read_text().startswith("#!/usr/bin/env bash")]
    assert scripts
    for script in scripts:
        run = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


def test_reference_pages_are_current():
    run = subprocess.run([ROOT / "scripts" / "reference-docs", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[:4000] + run.stderr


def test_plots_are_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="Triton's requirements have matplotlib")
    subprocess.run([sys.executable, ROOT / "docs" / "benchmarks" / "plots.py", tmp_path], check=True, capture_output=True)
    pictures = sorted(p.name for p in tmp_path.iterdir())
    assert pictures == ["history_compile_time.svg", "history_gemms.svg", "history_memory_bound.svg", "roofline.svg"]
    assert all((tmp_path / p).read_text().count("<use ") > 20 for p in pictures)  # marks


def test_tables_say_what_the_csv_files_say():
    run = subprocess.run([sys.executable, ROOT / "docs" / "benchmarks" / "tables.py", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[:4000] + run.stderr


def test_no_measured_row_is_of_uncommitted_code():
    folder = ROOT / "docs" / "benchmarks"
    assert not [f"{path.name}: {line}" for path in folder.glob("*.csv") for line in path.read_text().splitlines() if "-dirty," in line]


def test_passes_verify_what_they_leave():
    """In production, too: nobody turns a pass manager's verifier off, and what is emitted outside of one is verified."""
    off = [n for n in tracked(*CPP) if n.startswith(("lib/", "tools/", "dialects/")) and "enableVerifier(" in (ROOT / n).read_text()]
    assert not off, off
    for emitter in ("lib/AMDGPU/Hsaco.cpp", "lib/SPIRV/SpirvEmitter.cpp"):
        assert "failed(verify(*" in (ROOT / emitter).read_text(), emitter


def test_files_are_small():
    long = {n: lines for n in tracked(*CPP, ".td", ".py") if (lines := (ROOT / n).read_text().count("\n")) > 650}
    assert not long, "split these: about 600 lines is the limit"
