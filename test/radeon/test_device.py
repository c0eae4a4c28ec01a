"""GRETA's Vulkan back end on Mesa's RADV over the virtual Radeon: what the device is, where matrices' elements lie, health, graphs, times, reports."""

import json
import os
import re
import subprocess
import zipfile

import pytest

import harness
from attention_ops import Attention
from radeon import CHIPS, fresh, launcher
from tiled import Product

TARGET = "vulkan:rdna3"
LAPTOP = "phoenix"
# Chips whose driver has cooperative matrices, which 25.0.7 does not offer on RDNA 4.
MATRICES = [("backports", "phoenix"), ("backports", "navi31"), ("backports", "gfx1151"), ("testing", "phoenix"), ("testing", "gfx1201")]
ATTENTION = Attention("causal", "f16", 1, 2, 1, 20, 45, 16)
NORM = """func.func @norm(%x: tensor<?x256xf32>, %w: tensor<256xf32>) -> tensor<?x256xf32> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x256xf32>, tensor<256xf32> -> tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}"""


def devices(words, **options):
    listed = harness.tool(*words, harness.RUN, "--list-devices", "--json", **options)
    assert listed.returncode == 0, listed.stderr
    return next(d for d in json.loads(listed.stdout) if d["backend"] == "vulkan" and d["available"])


def bases(layout):
    return layout["use"], layout["dtype"], layout["rows"], layout["cols"], str(layout["lane"]), str(layout["element"])


def required(package):
    """The layouts that the compiler's table (lib/Target) builds a package's variants in."""
    return {bases(layout) for function in harness.manifest(package)["functions"] for variant in function["variants"] for layout in variant["requires"].get("layouts", [])}


@pytest.fixture(scope="session")
def attention(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("layouts"), "attention", ATTENTION.mlir(TARGET), TARGET)


@pytest.fixture(scope="session")
def norm(tmp_path_factory):
    return harness.compile_package(tmp_path_factory.mktemp("norm"), "norm", NORM, f"{TARGET},host")


def changed(package, path, change):
    """A copy of the package with another manifest."""
    with zipfile.ZipFile(package) as archive, zipfile.ZipFile(path, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest)
            copy.writestr(name, data)
    return path


@pytest.mark.parametrize("mesa", ["backports", "testing"])
@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip_is_checked_and_computes(tmp_path, driver_parts, norm, mesa, chip):
    """Opened, checked for health and used under the validation layer; a first kernel like the host's."""
    words = (*launcher(driver_parts, chip, mesa, "--validate"), harness.RUN)
    smoke = harness.tool(*words, "--smoke=1", "--device=vulkan", env=fresh(tmp_path))
    assert smoke.returncode == 0, smoke.stderr
    assert re.search(r"RADV .*: 1 of 1 runs clean, \d+ variants checked", smoke.stdout), smoke.stdout
    ran = harness.tool(*words, norm, "--device=vulkan", "--input=5x256xf32:random:1", "--input=256xf32:random:2", "--check")
    assert ran.returncode == 0 and "check r0: passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_record_of_estimates(tmp_path, driver_parts, norm):
    """A line of JSON for each dispatch; with estimates only, a large grid has the time of the whole and results of a few workgroups."""
    record = tmp_path / "record"

    def ran(rows, *arguments, **variables):
        record.unlink(missing_ok=True)
        inputs = (f"--input={rows}x256xf32:random:1", "--input=256xf32:random:2")
        environment = fresh(tmp_path, **{"GRETA_PROFILE": "fast", "GRETA_VIRTUAL_RADEON_RECORD": str(record), **variables})
        return harness.tool(*launcher(driver_parts, LAPTOP), harness.RUN, norm, "--device=vulkan", *inputs, *arguments, env=environment)

    def last():
        return json.loads(record.read_text().splitlines()[-1])

    small = ran(4, "--check")
    assert small.returncode == 0, small.stderr
    kernel = last()
    assert kernel["wave_size"] in (32, 64) and kernel["vgprs"] > 0 and kernel["scratch_bytes"] == 0
    assert kernel["grid"][0] * kernel["block"][0] > 0 and kernel["bound"] and 0 < kernel["busy"]["vmem"] <= 1
    assert ran(65536, GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY="1").returncode == 0
    large = last()
    assert large["vgprs"] == kernel["vgprs"] and large["microseconds"] > 20 * kernel["microseconds"]
    wrong = ran(65536, "--check", GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY="1")
    assert wrong.returncode == 1 and "--check failed: result 'r0'" in wrong.stderr
    refused = ran(4, GRETA_VIRTUAL_RADEON_RECORD=str(tmp_path / "no" / "folder"))
    assert refused.returncode == 2 and "GRETA_VIRTUAL_RADEON_RECORD" in refused.stderr and refused.stderr.count("\n") == 1


@pytest.mark.parametrize("profile", ["ultrasafe", "fast"])
def test_profiles(tmp_path, driver_parts, profile):
    ran = harness.tool(*launcher(driver_parts, LAPTOP), harness.RUN, "--smoke=2", "--device=vulkan", env=fresh(tmp_path, GRETA_PROFILE=profile))
    assert ran.returncode == 0 and "2 of 2 runs clean" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("mesa, chip", MATRICES)
def test_layouts_are_the_tables(tmp_path, driver_parts, attention, mesa, chip):
    """The runtime's probe, executed on RADV's code, finds elements where the compiler's table has them on RDNA 3, and elsewhere on RDNA 4."""
    device = devices(launcher(driver_parts, chip, mesa), env=fresh(tmp_path))
    found = {bases(layout) for layout in device["layouts"] if layout.get("subgroup_size") == 32 and "lane" in layout}
    assert len(found) >= 10, device["layouts"]
    assert required(attention)
    assert required(attention).isdisjoint(found) if chip == "gfx1201" else required(attention) <= found


def test_layouts_where_only_estimates_are_wanted(tmp_path, driver_parts, attention):
    """The probe and the driver's copies for it are small: they run whole, and the cache holds nothing wrong."""
    device = devices(launcher(driver_parts, LAPTOP), env=fresh(tmp_path, GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY="1"))
    assert required(attention) <= {bases(layout) for layout in device["layouts"] if layout.get("subgroup_size") == 32 and "lane" in layout}


def test_another_card_in_the_same_place(tmp_path, driver_parts):
    """The runtime does not take one card's cache for the next one's: Mesa's device UUID is the place on the bus."""
    found = [{bases(layout) for layout in devices(launcher(driver_parts, chip, "testing"), env=fresh(tmp_path))["layouts"] if "lane" in layout} for chip in ("navi31", "gfx1201")]
    assert found[0].isdisjoint(found[1])


@pytest.mark.parametrize("mesa, chip", [("backports", "navi31"), ("testing", "gfx1201")])
def test_each_generation_takes_its_own_variant(tmp_path, driver_parts, mesa, chip):
    """Cooperative matrices of a GEMM have no layout that the other generation lacks, so either's variant would run."""
    package = harness.compile_package(tmp_path, "matmul", Product("plain", "nt", "d", 64, 128, 128, "f16", "f16").mlir(TARGET), "vulkan:rdna3,vulkan:rdna4")
    words = (*launcher(driver_parts, chip, mesa), harness.RUN, package, "--device=vulkan", "--input=64x128xf16:random:1", "--input=128x128xf16:random:2", "--json")
    ran = harness.tool(*words)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["variant"] == ("vulkan-rdna4-coopmat" if chip == "gfx1201" else "vulkan-rdna3-coopmat")


@pytest.mark.parametrize("chip, nearest", [("navi31", "vulkan-rdna3-coopmat"), ("phoenix", "laptop")])
def test_the_row_of_the_nearest_size_is_taken(tmp_path, driver_parts, chip, nearest):
    """Two rows of a family differ in what they were tuned for: 96 compute units, and 12."""
    package = harness.compile_package(tmp_path, "matmul", Product("plain", "nt", "d", 64, 128, 128, "f16", "f16").mlir(TARGET), TARGET)

    def double(manifest):
        variants = manifest["functions"][0]["variants"]
        assert variants[0]["compute_units"] == 96
        variants.append(variants[0] | {"id": "laptop", "target": "vulkan:rdna3-phoenix", "compute_units": 12})

    words = (*launcher(driver_parts, chip), harness.RUN, changed(package, tmp_path / "two.greta", double), "--device=vulkan")
    ran = harness.tool(*words, "--input=64x128xf16:random:1", "--input=128x128xf16:random:2", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["variant"] == nearest


@pytest.mark.parametrize("chip, taken", [("navi31", "vulkan-rdna3-coopmat"), ("phoenix", "fewer")])
def test_a_row_may_require_compute_units(tmp_path, driver_parts, chip, taken):
    """The first of two equal variants needs 96, which navi31 has and phoenix has not."""
    package = harness.compile_package(tmp_path, "matmul", Product("plain", "nt", "d", 64, 128, 128, "f16", "f16").mlir(TARGET), TARGET)

    def double(manifest):
        variants = manifest["functions"][0]["variants"]
        variants.insert(1, variants[0] | {"id": "fewer"})
        variants[0]["requires"] = variants[0]["requires"] | {"compute_units": 96}

    words = (*launcher(driver_parts, chip), harness.RUN, changed(package, tmp_path / "two.greta", double), "--device=vulkan")
    ran = harness.tool(*words, "--input=64x128xf16:random:1", "--input=128x128xf16:random:2", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["variant"] == taken


def test_a_wrong_layout_is_seen(tmp_path, driver_parts, attention):
    """Two lane bits exchanged: the runtime passes the variant over; without asking, its results are wrong."""
    words = (*launcher(driver_parts, LAPTOP), harness.RUN)

    def exchange(manifest):
        for variant in manifest["functions"][0]["variants"]:
            for layout in variant["requires"].get("layouts", []):
                layout["lane"][0], layout["lane"][1] = layout["lane"][1], layout["lane"][0]

    shown = json.loads(harness.tool(*words, attention, "--inspect", "--device=vulkan", "--json").stdout)
    wrong = json.loads(harness.tool(*words, changed(attention, tmp_path / "wrong.greta", exchange), "--inspect", "--device=vulkan", "--json").stdout)

    def runnable(inspected):
        return {v["id"]: v["runnable"] for v in inspected["device"][ATTENTION.function].values()}

    assert runnable(shown)["vulkan-rdna3-coopmat"]
    assert not runnable(wrong)["vulkan-rdna3-coopmat"] and runnable(wrong)["vulkan-rdna3"]


def test_code_in_a_wrong_layout_computes_wrong(tmp_path, driver_parts, attention):
    """Kernels in RDNA 3's layouts run on RDNA 4: the judge of the end-to-end tests would see it if the runtime did not ask."""

    def without(manifest):
        for variant in manifest["functions"][0]["variants"]:
            variant["requires"].pop("layouts", None)

    package = changed(attention, tmp_path / "believed.greta", without)
    results = harness.run_cases("vulkan", package, [ATTENTION.name], launcher(driver_parts, "gfx1201", "testing"), every_variant=1)[ATTENTION.name]
    verdicts = {line["variant"]: "problem" in line for line in results}
    assert verdicts == {"vulkan-rdna3-coopmat": True, "vulkan-rdna3": False}


def test_times_are_modelled(tmp_path, driver_parts):
    """A product of eight times the work takes longer by the card's clock, and the same each time."""
    package = harness.compile_package(tmp_path, "matmul", Product("plain", "nt", "d", 64, 128, 128, "f16", "f16").mlir(TARGET), TARGET)
    times = []
    for rows in (64, 512, 512):
        words = (*launcher(driver_parts, LAPTOP), harness.RUN, package, "--device=vulkan", f"--input={rows}x128xf16:random:1", "--input=128x128xf16:random:2")
        ran = harness.tool(*words, "--bench", "--reps=3", "--launches=1", "--rotate=1", "--json")
        assert ran.returncode == 0, ran.stderr
        times.append(json.loads(ran.stdout)["median_us"])
    assert 0 < times[0] < times[1] == times[2], times


def test_a_report_loses_the_device(tmp_path, driver_parts):
    """A row of a table that is far behind its end: the simulator says who reads it."""
    package = harness.compile_package(tmp_path, "gather", (harness.ROOT / "test" / "tile" / "gather_rows.mlir").read_text(), TARGET)
    words = (*launcher(driver_parts, LAPTOP), harness.RUN, package, "--device=vulkan", "--input=100x50xf32:random:1")
    good = harness.tool(*words, "--input=20xi32:value:99")
    assert good.returncode == 0, good.stderr
    # Near behind the buffer, in what would be the same block of the runtime's pool.
    assert harness.tool(*words, "--input=20xi32:value:200000", env=os.environ | {"GRETA_VULKAN_POOL": "on"}).returncode == 0
    assert harness.tool(*words, "--input=20xi32:value:200000").returncode != 0
    ran = harness.tool(*words, "--input=20xi32:value:1000000000")
    assert ran.returncode != 0
    assert re.search(r"virtual Radeon: kernel 'compute shader at 0x\w+': .* is out of bounds; .*instruction at 0x\w+ 'global_load_.*workgroup \(0,0,0\), wave \d, lane \d+", ran.stderr), ran.stderr
    assert "This context is guilty" in ran.stderr and "the device was lost" in ran.stderr


def test_checks_can_be_chosen(tmp_path, driver_parts):
    ran = harness.tool(*launcher(driver_parts, LAPTOP), harness.RUN, "--list-devices", env=fresh(tmp_path, GRETA_SIM_CHECKS="all,nonsense"))
    assert "virtual Radeon: GRETA_SIM_CHECKS: unknown check 'nonsense'" in ran.stderr


def test_a_chip_that_is_not_there(driver_parts):
    words = [word if word != LAPTOP else "voodoo" for word in launcher(driver_parts, LAPTOP)]
    ran = harness.tool(*words, harness.RUN, "--list-devices")
    assert ran.returncode == 2
    assert "virtual Radeon: GRETA_VIRTUAL_RADEON: no chip 'voodoo'; there are phoenix navi21 navi31 gfx1151 gfx1201" in ran.stderr


def test_another_programs_vulkan(driver_parts):
    """vulkaninfo reads everything that the driver says."""
    ran = harness.tool(*launcher(driver_parts, "navi31"), "vulkaninfo", "--summary")
    assert ran.returncode == 0, ran.stderr
    assert "RADV NAVI31" in ran.stdout and "0x744c" in ran.stdout


# Cases that are about lavapipe: subgroups of 64 that are not there; and the host's memory, in which this card lives.
OF_LAVAPIPE = "OnDevice.DescribesTheFunction OnDevice.ForcedVariantsSayWhyNot VulkanDevice.RefusesWhatItCannotRun VulkanDevice.RefusesModulesThatDoNotFit VulkanDevice.PrefersItsFamily Launches.AllocateNothing"


@pytest.mark.parametrize("mesa, chip", [("backports", LAPTOP), ("backports", "navi31")])
def test_the_runtimes_tests(tmp_path, driver_parts, mesa, chip):
    """greta-runtime-test: memory, streams, graphs, events, host calls, sharing, errors; with the host's memory and with the card's own."""
    # Ranks that are on several hosts talk through sockets, whatever memory a card has.
    without = ":".join(f"*{name}*" for name in (*OF_LAVAPIPE.split(), *(["vulkan_hosts"] if chip == LAPTOP else [])))
    words = (harness.BUILD / "bin" / "greta-runtime-test", f"--gtest_filter=*ulkan*:Integrated*-{without}", "--gtest_brief=1")
    ran = harness.tool(*launcher(driver_parts, chip, mesa), *words, env=fresh(tmp_path, GRETA_VULKAN_POOL="on"))
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert int(re.search(r"PASSED  \] (\d+) tests", ran.stdout)[1]) >= 60, ran.stdout


@pytest.mark.parametrize("mesa, chip", [("backports", "phoenix"), ("backports", "navi21"), ("testing", "gfx1201")])
def test_a_language_model_says_the_same(tmp_path, driver_parts, mesa, chip):
    """Token for token what lavapipe says."""
    package = tmp_path / "tiny.greta"
    llm = harness.BUILD / "bin" / "greta-llm"
    made = harness.tool(llm, "compile", "--synthetic=tiny", "--targets=vulkan", "-o", package)
    assert made.returncode == 0, made.stderr
    words = (llm, "generate", package, "--synthetic=tiny", "--device=vulkan", "-q", "-n", "24", "--temp", "0", "-p", "Once")
    starts = launcher(driver_parts, chip, mesa), (harness.DRIVERS, "lavapipe")
    said = [subprocess.run([str(word) for word in (*start, *words)], capture_output=True, timeout=300) for start in starts]  # bytes: the tiny model knows no UTF-8
    assert all(s.returncode == 0 for s in said), [s.stderr for s in said]
    assert said[0].stdout == said[1].stdout and len(said[0].stdout) > 20
