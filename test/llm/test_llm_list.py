"""`greta-llm list`: the models that are known and the packages in the cache, as a table and as JSON."""

import json
import os

from test_llm import llm


def test_list(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    empty = json.loads(llm("list", "--json", env=environment).stdout)
    assert empty["packages"] == [] and {"config": "gemma3_text", "gguf": "gemma3"} in empty["architectures"]
    assert "tiny" in empty["synthetic"] and "q4_0" in empty["formats"] and not (tmp_path / "greta").exists()
    folder = tmp_path / "greta" / "llm"
    folder.mkdir(parents=True)
    assert llm("compile", "--synthetic=tiny", "--targets=gfx942", "-q", "-o", folder / "a.greta").returncode == 0
    (folder / "b.greta").write_bytes(b"x" * 9)
    os.utime(folder / "b.greta", (0, 0))
    new, old = json.loads(llm("list", "--json", env=environment).stdout)["packages"]
    assert (new["name"], new["targets"], new["bytes"]) == ("a.greta", ["gfx942"], (folder / "a.greta").stat().st_size)
    assert (old["name"], old["targets"], old["bytes"]) == ("b.greta", [], 9) and old["age"] > 10**9
    table = llm("list", env=environment).stdout
    assert f"packages in {folder}: 2" in table and "b.greta  damaged  0.0 MB" in table


def test_cache_that_is_no_folder(tmp_path):
    (tmp_path / "greta").mkdir()
    (tmp_path / "greta" / "llm").write_text("")
    ran = llm("list", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert ran.returncode == 1 and "greta/llm: cannot be listed: Not a directory" in ran.stderr
