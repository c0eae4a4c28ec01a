"""Compiles modules of the `greta` dialect, runs cases on a device, and runs the command line tools, for the end-to-end tests."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from conftest import BUILD, DRIVERS, ROOT

TRANSLATE = BUILD / "bin" / "greta-translate"
RUN = BUILD / "bin" / "greta-run"
MAX_CRASHES = 3
AMD_CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


def tool(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **options)


def compile_package(directory, name, source, targets):
    """Writes NAME.mlir and compiles it; a compiler that complains is a failed test with its diagnostic."""
    mlir, package = directory / f"{name}.mlir", directory / f"{name}.greta"
    mlir.write_text(source)
    made = tool(TRANSLATE, "--greta-to-package", f"--targets={targets}", mlir, "-o", package)
    assert made.returncode == 0, made.stderr[:4000]
    return package


def manifest(package):
    with zipfile.ZipFile(package) as archive:
        return json.loads(archive.read("manifest.json"))


def function_of(package, name):
    (function,) = [f for f in manifest(package)["functions"] if f["name"] == name]
    return function


def run_cases(device, package, work, launcher=()):
    """{(case, rows): [lines of worker.py]} for all of `work`; after a crash it goes on behind the case that crashed."""
    results, crashes = {tuple(w): [] for w in work}, 0
    while work:
        command = [*launcher, sys.executable, ROOT / "test" / "e2e" / "worker.py", device, package]
        libraries = {**os.environ, "PYTHONPATH": str(ROOT / "scripts" / "lib")}
        worker = subprocess.run([str(c) for c in command], input=json.dumps(work), capture_output=True, text=True, timeout=1500, env=libraries)
        current = None
        for line in map(json.loads, worker.stdout.splitlines()):
            if "start" in line:
                current = tuple(line["start"])
            else:
                results[line["case"], line["rows"]].append(line)
        if worker.returncode == 0:
            break
        crashes += 1
        problem = f"worker ended with {worker.returncode}: {worker.stderr[-2000:]}"
        done = [tuple(w) for w in work].index(current) + 1 if current else len(work)
        results[current or tuple(work[0])].append({"problem": problem})
        work = work[done:]
        if crashes == MAX_CRASHES:
            for item in work:
                results[tuple(item)].append({"problem": f"not run after {crashes} crashes"})
            break
    return results


def lavapipe_launcher():
    return (DRIVERS, "lavapipe", "--validate")


def compiled_once(tmp_path_factory, name, chosen_for, source, inspect=lambda package: None):
    """run(target, device, launcher) -> results of the cases that `chosen_for(target)` names, compiled from `source(case, target)`, seen by
    `inspect`, and run, all of it once."""
    made = {}

    def run(target, device, launcher=()):
        key = target, launcher
        if key not in made:
            chosen = chosen_for(target)
            package = compile_package(tmp_path_factory.mktemp(name), name, "\n".join(source(c, target) for c in chosen), target)
            inspect(package)
            made[key] = run_cases(device, package, [[c.name, c.m] for c in chosen], launcher)
        return made[key]

    return run


def grid(name, chosen_for, *targets):
    """Parameters (target, case); a worker of pytest keeps the cases of a target together."""
    return [pytest.param(t, c, id=f"{t}-{c.name}", marks=pytest.mark.xdist_group(f"{name}-{t}")) for t in targets for c in chosen_for(t)]


def check(lines, case, unit=None):
    """Every variant ran and is within the case's tolerances; with `unit`, a variant of that name was among them."""
    assert lines, f"{case.name}: no result"
    for line in lines:
        assert "problem" not in line, f"{case.name}, {line.get('variant')}: {line['problem']}"
        assert all(e <= limit for e, limit in zip(line["errors"], case.tolerances, strict=True)), f"{line} is over {case.tolerances}"
    if unit:
        assert any(line["variant"].endswith(unit) for line in lines), f"no variant with {unit}: {lines}"
