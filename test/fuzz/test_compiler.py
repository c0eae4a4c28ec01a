"""The compiler's fuzzers for a moment; docs/fuzzing.md records their long runs."""

import collections
import subprocess

import random_functions

from conftest import BUILD, ROOT


def test_random_functions_agree_with_host():
    outcomes = list(random_functions.run_all(seed=1, count=36))
    wrong = [f"function {o.index} {o.what}\n{o.detail}\n{o.text}" for o in outcomes if o.what not in random_functions.HARMLESS]
    assert not wrong, "\n".join(wrong)
    # The seed is fixed, so this many run on every device, or the compiler refuses more than it did.
    ran = collections.Counter(device for o in outcomes for device in o.ran)
    assert all(ran[device] >= 20 for device in random_functions.DEVICES), ran


def test_mutated_sources_end_in_a_diagnostic(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    fuzzer = [BUILD / "bin" / "greta-compiler-fuzz", "-seed=1", "-runs=2000", "-mutate_depth=3", "-timeout=60", f"-artifact_prefix={tmp_path}/"]
    run = subprocess.run([*fuzzer, corpus, ROOT / "test" / "fuzz" / "compiler" / "corpus"], capture_output=True, text=True, errors="replace")
    assert run.returncode == 0, run.stderr[-6000:]
    assert any(corpus.iterdir()), "nothing new was found: the fuzzer does not see what its inputs become"
