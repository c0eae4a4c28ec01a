"""Compiles modules of the `greta` dialect, runs cases on a device, and runs the command line tools, for the end-to-end tests."""

import itertools
import json
import os
import pty
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import limits
from conftest import BUILD, DRIVERS, ROOT
from greta_runtime import DTYPES

TRANSLATE = BUILD / "bin" / "greta-translate"
RUN = BUILD / "bin" / "greta-run"
MAX_CRASHES = 3
# The C library keeps large arrays, which a definition makes one after another, in place of asking the kernel for zeroed pages each time.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
# One chip of each family takes whole suites; those with the same instructions as one of these share its cases among them.
# Whether every device takes every case, which takes hours in all.
WHOLE = bool(os.environ.get("GRETA_TEST_WHOLE"))
AMD_FAMILIES = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1030")
AMD_SIBLINGS = {**dict.fromkeys(("gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151"), "gfx1100"), "gfx1200": "gfx1201"}
AMD_CHIPS = (*AMD_FAMILIES, *AMD_SIBLINGS)


def tool(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **options)


def said_on_a_terminal(*command, **options):
    """Returns a tool's stderr when stderr is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=theirs, **options)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert process.wait(timeout=300) == 0, said
    return said.decode()


def compile_package(directory, name, source, targets):
    """Writes NAME.mlir and compiles it; a compiler that complains is a failed test with its diagnostic."""
    mlir, package = directory / f"{name}.mlir", directory / f"{name}.greta"
    mlir.write_text(source)
    made = tool(TRANSLATE, "--greta-to-package", f"--targets={targets}", mlir, "-o", package)
    assert made.returncode == 0, made.stderr[:4000]
    return package


def vgpr_spills(directory, cases, target):
    """{function: the vector registers that each of its kernels spills} by the default choice of tiles."""
    (directory / "spills.mlir").write_text("\n".join(case.mlir() for case in cases))
    made = tool(TRANSLATE, "--report=json", f"--targets={target}", directory / "spills.mlir")
    assert made.returncode == 0, made.stderr
    return {f["name"]: [kernel["stats"]["vgpr_spills"] for kernel in v["kernels"]] for f in json.loads(made.stdout)["functions"] for v in f["variants"]}


def manifest(package):
    with zipfile.ZipFile(package) as archive:
        return json.loads(archive.read("manifest.json"))


def function_of(package, name):
    (function,) = [f for f in manifest(package)["functions"] if f["name"] == name]
    return function


# A driver translates the second variant of a product, without cooperative matrices, for as long as the first, and vulkan:portable has the same cases
# without them: about every fourth case runs in every variant.
EVERY_VARIANT = 1 if WHOLE else 4


def run_cases(device, package, work, launcher=(), every_variant=EVERY_VARIANT):
    """{name of a case: [lines of worker.py]} for all names of `work`; after a crash it goes on behind the case that crashed. Every case runs in the
    variant that the device prefers, and about every `every_variant`-th in all that it takes."""
    results, crashes = {name: [] for name in work}, 0
    while work:
        command = [*launcher, sys.executable, ROOT / "test" / "e2e" / "worker.py", device, package, every_variant]
        environment = {**os.environ, **KEPT_MEMORY, "PYTHONPATH": str(ROOT / "scripts" / "lib")}
        worker = subprocess.run([str(c) for c in command], input=json.dumps(work), capture_output=True, text=True, timeout=1500, env=environment)
        current = None
        for line in map(json.loads, worker.stdout.splitlines()):
            if "start" in line:
                current = line["start"]
            else:
                results[line["case"]].append(line)
        if worker.returncode == 0:
            break
        crashes += 1
        problem = f"worker ended with {worker.returncode}: {worker.stderr[-2000:]}"
        done = work.index(current) + 1 if current else len(work)
        results[current or work[0]].append({"problem": problem})
        work = work[done:]
        if crashes == MAX_CRASHES:
            for name in work:
                results[name].append({"problem": f"not run after {crashes} crashes"})
            break
    return results


def lavapipe_launcher():
    return (DRIVERS, "lavapipe", "--validate")


def part_for(target, cases_of):
    """The cases that `cases_of` names for a target, or of those for its family every sixth."""
    if target not in AMD_SIBLINGS:
        return cases_of(target)
    return cases_of(AMD_SIBLINGS[target])[list(AMD_SIBLINGS).index(target) :: len(AMD_SIBLINGS)]


def share_of(cases, target, parts):
    """Every `parts`-th of the cases: as many targets that follow each other in their row take all of them. GRETA_TEST_WHOLE=1: all of them."""
    if WHOLE:
        return cases
    rows = (AMD_FAMILIES, [*AMD_SIBLINGS], ("vulkan:lavapipe", "vulkan:portable", "host"), ("vulkan:rdna3", "vulkan:rdna4"))
    row = next(row for row in rows if target in row)
    return cases[row.index(target) % parts :: parts]


def spread(cases, family, features):
    """The cases of a family of AMD. As many cases as have all `features`, a function of a case, are on a CDNA and an RDNA family each, the others on one of
    the six. GRETA_TEST_WHOLE=1: all of them."""
    if WHOLE:
        return cases
    met, chosen, number = set(), [], AMD_FAMILIES.index(family)
    for i, case in sorted(enumerate(cases), key=lambda numbered: -len(features(numbered[1]))):
        is_first = not met.issuperset(features(case))
        met.update(features(case))
        if (number - i) % (3 if is_first else 6) == 0:
            chosen.append((i, case))
    return [case for _, case in sorted(chosen, key=lambda numbered: numbered[0])]


# Vulkan's drivers of this machine, which compile and compute for a CPU; results_on says which one has which target.
CPU_DRIVERS = "vulkan:lavapipe", "vulkan:portable"


def shared_by_drivers(cases, target, parts):
    """`share_of` on the drivers for a CPU, all cases on others."""
    return share_of(cases, target, parts) if target in CPU_DRIVERS else cases


def one_kernel(package, least=1):
    """Each function is one kernel on GPUs, or as few as `least`."""
    for function in manifest(package)["functions"]:
        variants = [v for v in function["variants"] if v["target"] != "host"]
        kernels = {k["entry"] for v in variants for k in v["kernels"]}
        assert not variants or least <= len(kernels) <= 1, f"{function['name']} is not one kernel: {kernels}"


def compiled_once(tmp_path_factory, name, chosen_for, inspect=lambda package: None):
    """run(target, device, launcher) -> results of the cases that `chosen_for(target)` names, compiled (each text once), seen by `inspect`, and run, all of it once."""
    made = {}

    def run(target, device, launcher=()):
        key = target, launcher
        if key not in made:
            chosen = part_for(target, chosen_for)
            package = compile_package(tmp_path_factory.mktemp(name), name, "\n".join(dict.fromkeys(c.mlir(target) for c in chosen)), target)
            inspect(package)
            made[key] = run_cases(device, package, [c.name for c in chosen], launcher)
        return made[key]

    return run


def results_on(results, target, driver_parts):
    """What `compiled_once` gives on the device that a target is for; for lavapipe's family that is testing's, which has cooperative matrices."""
    if target in AMD_CHIPS:
        return results(target, f"sim:{target}")
    if target != "vulkan:lavapipe":
        return results(target, target.partition(":")[0])
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    return results(target, "vulkan", lavapipe_launcher())


def group(name, target):
    return pytest.mark.xdist_group(f"{name}-{target}")


# Products that take multiply-adds though there is a unit for their types: what their tiles need is not there. {chips: names}
FALLBACKS = {
    "gfx": ["epilogue_biasneox10_nt_s_17_50_17_f32_f32_auto", "epilogue_pair_nt_s_16_17_1_f32_f32_auto"],  # heads that no instruction's columns divide; 16 rows of K = 1
}


def matrix_unit(target, case):
    """The unit that a target computes a case's product with, as it ends the variant's name; None where it has none for these types."""
    units = {"gfx9": "mfma", "gfx11": "wmma", "gfx12": "wmma", "vulkan:lavapipe": "coopmat"}
    without = {"mfma": set(), "wmma": {"f32"}, "coopmat": {"f32", "bf16"}}
    unit = next((unit for prefix, unit in units.items() if target.startswith(prefix)), None)
    return unit if unit and case.has_matrix_product and not case.operand_types & without[unit] else None


def check(results, *cases, target=""):
    """Each case is right (limits.py) in every variant that ran it, on a target with a matrix unit for it one that uses the unit, or the case is a fallback."""
    for case in cases:
        lines = results[case.name]
        assert lines, f"{case.name}: no result"
        for line in lines:
            assert "problem" not in line, f"{case.name}, {line.get('variant')}: {line['problem']}"
        unit = matrix_unit(target, case)
        if unit:
            is_fallback = any(target.startswith(chips) and case.name in names for chips, names in FALLBACKS.items())
            assert any(line["variant"].endswith(unit) for line in lines) != is_fallback, f"{case.name}: {unit} is in {[line['variant'] for line in lines]}"


def suite(name, chosen_for, targets, inspect=lambda package: None, in_units=True):
    """(fixture `results`, test of each case, test of a target's cases together), for a module of tests in which `chosen_for(target)` names the cases.

    `results` is what `compiled_once` gives; a worker of pytest keeps the cases of a target together. With in_units a case has to be computed by the target's
    matrix unit where it has one for the case's types."""

    chosen = {target: cases for target in targets if (cases := part_for(target, chosen_for))}

    @pytest.fixture(scope="session")
    def results(tmp_path_factory):
        return compiled_once(tmp_path_factory, name, chosen_for, inspect)

    @pytest.mark.parametrize("target, case", [pytest.param(t, c, id=f"{t}-{c.name}", marks=group(name, t)) for t, cases in chosen.items() for c in cases])
    def test_case(results, driver_parts, target, case):
        check(results_on(results, target, driver_parts), case, target=target if in_units else "")

    @pytest.mark.parametrize("target", [pytest.param(t, marks=group(name, t)) for t in chosen])
    def test_together(results, driver_parts, target):
        check_together(results_on(results, target, driver_parts))

    return results, test_case, test_together


def run_tool(directory, package, device, case, *flags, launcher=()):
    """greta-run on a case's inputs, in files: bf16 travels as uint16. Its output and the verdict on its first result (limits.judge)."""
    inputs, operands = case.inputs(), []
    for i, array in enumerate(inputs):
        is_bf16 = array.dtype == DTYPES["bf16"]
        np.save(directory / f"{i}.npy", array.view(np.uint16) if is_bf16 else array)
        operands.append(f"--input={'bf16:' if is_bf16 else ''}{directory}/{i}.npy")
    ran = tool(*launcher, RUN, package, f"--device={device}", f"--function={case.function}", *operands, f"--output={directory}/y.npy", *flags)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    result = np.load(directory / "y.npy")
    return ran, limits.judge(case, list(case.references(inputs)), [result.view(DTYPES["bf16"]) if result.dtype == np.uint16 else result], device.removeprefix("sim:"))


def check_together(results):
    """The cases of one limit and type are right as one, too; those with problems have their own tests."""
    pools = {}
    for line in itertools.chain.from_iterable(results.values()):
        if "problem" not in line:
            pools.setdefault((line["limit"], line["precision"], line["variant"]), []).append(line)
    assert pools
    problems = {key: limits.judge_together(lines) for key, lines in pools.items()}
    assert not any(problems.values()), {key: problem for key, problem in problems.items() if problem}
