"""Memory of the virtual cards through the runtime on RADV: an APU's is the host's, all of it; a discrete card's is its own."""

import json
import os
import re
import sys

import pytest

import harness
from radeon import fresh, launcher

GIB = 1 << 30
CARVED_OUT = 4 * GIB  # what phoenix calls its own (lib/VirtualRadeon/Chips.cpp)
HOST = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
UPLOAD = """
import sys, numpy as np
from greta_runtime import Runtime
runtime = Runtime("vulkan")
data = np.arange(16 << 20, dtype=np.int32)
print("upload begins", file=sys.stderr, flush=True)
buffer = runtime.buffer(data)
runtime.synchronize()
print("upload ends", file=sys.stderr, flush=True)
assert (runtime.read(buffer, data.shape, "i32") == data).all()
"""
ALLOCATE = """
import ctypes, json, numpy as np
from greta_runtime import Runtime
runtime = Runtime("vulkan")
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("struct_size", "in_use", "peak", "reserved", "largest_free", "total", "free")]
def memory():
    memory = Memory(ctypes.sizeof(Memory))
    runtime.check(runtime.lib.greta_device_memory(runtime.device, ctypes.byref(memory)))
    return memory
before, size = memory(), 1 << 30
buffers = [runtime.buffer(size) for _ in range(before.total * 3 // 4 // size)]
for number, buffer in enumerate(buffers):
    word, back = ctypes.c_uint32(number), ctypes.c_uint32()
    place = ctypes.c_size_t(size - 4)
    runtime.check(runtime.lib.greta_buffer_write(runtime.stream, buffer, place, ctypes.byref(word), ctypes.c_size_t(4)))
    runtime.check(runtime.lib.greta_buffer_read(runtime.stream, buffer, place, ctypes.byref(back), ctypes.c_size_t(4)))
    assert back.value == number
print(json.dumps(dict(total=before.total, free=before.free, left=memory().free, held=len(buffers) * size)))
"""


def ran(words, script, cache, **variables):
    environment = fresh(cache, GRETA_PROFILE="fast", PYTHONPATH=str(harness.ROOT / "scripts" / "lib"), **variables)
    result = harness.tool(*words, sys.executable, "-c", script, env=environment)
    assert result.returncode == 0, result.stderr[-2000:]
    return result


@pytest.mark.parametrize("mesa", ["backports", "testing"])
@pytest.mark.parametrize("chip", ["phoenix", "gfx1151", "navi31"])
def test_an_upload_to_an_apu_is_no_copy(tmp_path, driver_parts, mesa, chip):
    """64 MB: not a packet for the card; a discrete one copies them with its own engine."""
    said = ran(launcher(driver_parts, chip, mesa), UPLOAD, tmp_path, GRETA_VIRTUAL_RADEON_TRACE="1").stderr
    packets = re.search(r"upload begins\n(.*)upload ends\n", said, re.DOTALL)[1].count("virtual Radeon: packet")
    assert packets > 100 if chip == "navi31" else packets == 0


@pytest.mark.parametrize("mesa", ["backports", "testing"])
def test_an_apu_has_all_of_the_memory(tmp_path, driver_parts, mesa):
    """RADV reports two thirds of video memory and what the kernel lends of the host's as one heap, the rest as the other: both are the device's."""
    memory = json.loads(ran(launcher(driver_parts, "phoenix", mesa), ALLOCATE, tmp_path).stdout)
    everything = CARVED_OUT + HOST // 2
    assert abs(memory["total"] - everything) < GIB // 16 and abs(memory["free"] - everything) < GIB // 16, memory
    assert memory["held"] > CARVED_OUT and memory["held"] > memory["total"] * 3 // 4 - GIB
    assert abs(memory["free"] - memory["left"] - memory["held"]) < GIB // 16, memory


def test_a_discrete_cards_memory_is_its_own(tmp_path, driver_parts):
    memory = json.loads(ran(launcher(driver_parts, "navi31"), ALLOCATE, tmp_path).stdout)
    assert memory["total"] == 24 * GIB and memory["held"] == 18 * GIB
