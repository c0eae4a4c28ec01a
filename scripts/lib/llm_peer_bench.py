"""greta-llm beside llama.cpp's Vulkan back end: both read the same GGUF files, of random weights in the shapes and formats of models that people download.

    llm_peer_bench.py compile DIR [MODEL..] [--tiny] [--targets=T]         here: a package of greta-llm for each model into DIR, as MODEL.greta
    llm_peer_bench.py run DIR CSV [MODEL..] [--tiny] [--folder=F]          there: makes each model's file below F, measures both programs of DIR, appends to CSV

Both evaluate prompts of 512 and 4,096 tokens and generate 128, three times; --tiny: 64 and 8, of models with small matrices. llama.cpp does so with flash
attention and without, and with parts of prompts of 512 and 2,048 tokens: all four are recorded, and the fastest counts. MODEL: one of SHAPES with one of
MIXTURES behind a colon; without one, all of MODELS.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

import records

COLUMNS = ["date", "commit", "gpu", "driver", "model", "weights", "test", "program", "version", "options", "tokens_per_second", "deviation"]
MODELS = ["llama3-8b:q4_0", "llama3-8b:q4_k_m", "gpt-oss-20b:mxfp4", "qwen3-30b-a3b:q4_k_m"]
SHAPES = {
    "llama3-8b": dict(kind="llama", layers=32, width=4096, hidden=14336, heads=32, key_heads=8, head=128, vocabulary=128256, context=8192, theta=5e5),
    "gpt-oss-20b": dict(kind="gpt-oss", layers=24, width=2880, hidden=2880, heads=64, key_heads=8, head=64, vocabulary=201088, context=131072, theta=1.5e5)
    | dict(experts=32, used=4),
    "qwen3-30b-a3b": dict(kind="qwen3moe", layers=48, width=2048, hidden=768, heads=32, key_heads=4, head=128, vocabulary=151936, context=32768, theta=1e6)
    | dict(experts=128, used=8),
}
TINY = dict(layers=2, width=256, hidden=512, heads=4, key_heads=2, head=64, vocabulary=512)
MIXTURES = {"q4_0": 2, "q4_k_m": 15, "mxfp4": 38}  # llama.cpp's numbers
# ggml's number, numbers of a block, its bytes.
FORMATS = {"f32": (0, 1, 4), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210), "mxfp4": (39, 32, 17)}
POOL = 32 << 20  # bytes of random blocks, which tensors repeat, each from another place


def shape_of(model, is_tiny):
    name, _, mixture = model.partition(":")
    if name not in SHAPES or mixture not in MIXTURES:
        sys.exit(f"{model}: there are {', '.join(SHAPES)}, each with {', '.join(MIXTURES)} behind a colon")
    shape = SHAPES[name] | (TINY if is_tiny else {})
    return shape | (dict(experts=8, used=2) if is_tiny and "experts" in shape else {}), mixture


def has_more_bits(layer, layers):
    """Whether llama-quantize gives a layer's values and last matrices more bits in the mixtures "M"."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def format_of(name, mixture, layer, layers):
    """That of a matrix, as llama-quantize mixes them."""
    if name == "ffn_gate_inp":
        return "f32"
    if mixture == "mxfp4":
        return "mxfp4" if name.endswith("_exps") else "q8_0"
    if name == "output" or mixture == "q4_k_m" and name in ("attn_v", "ffn_down", "ffn_down_exps") and has_more_bits(layer, layers):
        return "q6_k"
    return mixture.removesuffix("_m")


def layer_tensors(shape):
    """{name: rows first} of one layer: matrices have two dimensions or three, norms and sinks one."""
    width, hidden, is_oss = shape["width"], shape["hidden"], shape["kind"] == "gpt-oss"
    queries, keys = shape["heads"] * shape["head"], shape["key_heads"] * shape["head"]
    result = {"attn_norm": (width,), "post_attention_norm" if is_oss else "ffn_norm": (width,)}
    result |= {"attn_q": (queries, width), "attn_k": (keys, width), "attn_v": (keys, width), "attn_output": (width, queries)}
    if is_oss:
        result["attn_sinks"] = (shape["heads"],)
    if shape["kind"] == "qwen3moe":
        result |= {"attn_q_norm": (shape["head"],), "attn_k_norm": (shape["head"],)}
    of_experts, suffix = (), ""
    if experts := shape.get("experts"):
        of_experts, suffix = (experts,), "_exps"
        result["ffn_gate_inp"] = (experts, width)
    last = {"gate": (hidden, width), "up": (hidden, width), "down": (width, hidden)}
    return result | {f"ffn_{name}{suffix}": (*of_experts, *sizes) for name, sizes in last.items()}


def all_tensors(shape, mixture):
    """[(name, rows first, format)]"""
    vocabulary, width, layers = shape["vocabulary"], shape["width"], shape["layers"]
    groups = [(None, "", {"token_embd": (vocabulary, width), "output_norm": (width,), "output": (vocabulary, width)})]
    groups += [(layer, f"blk.{layer}.", layer_tensors(shape)) for layer in range(layers)]
    result = []
    for layer, prefix, sizes in groups:
        for name, size in sizes.items():
            is_matrix = len(size) > 1
            result.append((f"{prefix}{name}.weight", size, format_of(name, mixture, layer, layers) if is_matrix else "f32"))
            if shape["kind"] == "gpt-oss" and is_matrix and layer is not None:
                result.append((f"{prefix}{name}.bias", size[:-1], "f32"))
    return result


def metadata(model, shape, mixture):
    kind = shape["kind"]
    values = {"block_count": shape["layers"], "context_length": shape["context"], "vocab_size": shape["vocabulary"]}
    values |= {"embedding_length": shape["width"], "feed_forward_length": shape["hidden"]}
    values |= {"attention.head_count": shape["heads"], "attention.head_count_kv": shape["key_heads"]}
    values |= {"attention.key_length": shape["head"], "attention.value_length": shape["head"]}
    values |= {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": shape["theta"]}
    if "experts" in shape:
        values |= {"expert_count": shape["experts"], "expert_used_count": shape["used"], "expert_feed_forward_length": shape["hidden"]}
    if kind == "gpt-oss":
        values |= {"attention.sliding_window": 128}
        values |= {"rope.scaling.type": "yarn", "rope.scaling.factor": 32.0, "rope.scaling.original_context_length": 4096}
    values = {f"{kind}.{key}": value for key, value in values.items()} | {"tokenizer.ggml.model": "no_vocab"}
    general = {"architecture": kind, "name": model, "file_type": MIXTURES[mixture], "quantization_version": 2}
    return {f"general.{key}": value for key, value in general.items()} | values


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    return text(key) + (struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value))


def random_blocks(format, count, deviation, rng):
    """uint8 [count, bytes of a block]: their numbers have about this standard deviation, so that activations stay finite and each expert has its share."""

    def f16(value):
        return np.full((count, 1), value, np.float16).view(np.uint8)

    def some(size):
        return rng.integers(0, 256, (count, size), np.uint8)

    if format == "f32":
        return (deviation * rng.standard_normal((count, 1), np.float32)).view(np.uint8)
    if format == "q4_0":
        return np.hstack([f16(deviation / 4.6), some(16)])
    if format == "q8_0":
        return np.hstack([f16(deviation / 74), some(32)])
    if format == "q4_k":  # a scale and a minimum, which is half of the largest number
        return np.hstack([f16(deviation / 256), f16(7.5 * deviation / 256), some(140)])
    if format == "q6_k":
        return np.hstack([some(208), f16(deviation / 1370)])
    return np.hstack([np.full((count, 1), round(127 + np.log2(deviation / 2.9)), np.uint8), some(16)])  # mxfp4


def write(path, model, is_tiny=False, is_sparse=False):
    """A GGUF file without a tokenizer, which neither program's benchmark needs."""
    shape, mixture = shape_of(model, is_tiny)
    described, places, end = b"", [], 0
    tensors = all_tensors(shape, mixture)
    for name, sizes, format in tensors:
        number, block, size = FORMATS[format]
        end += -end % 32
        described += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *reversed(sizes), number, end)
        places.append((end, int(np.prod(sizes)) // block * size))
        end += places[-1][1]
    entries = metadata(model, shape, mixture)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entry(*one) for one in entries.items()) + described
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + end)
        file.flush()
        if not is_sparse:
            fill(file.fileno(), len(head), tensors, places)


def fill(file, start, tensors, places):
    """Every tensor is a pool of blocks over and over: norms of ones, the rest random."""
    rng, pools, jobs = np.random.default_rng(1), {}, []
    for i, ((name, sizes, format), (place, size)) in enumerate(zip(tensors, places)):
        kind = format, sizes[-1] if len(sizes) > 1 else 0, "norm" in name
        block = FORMATS[format][2]
        if kind not in pools:
            count = POOL // block if len(sizes) > 1 else POOL // 64 // block
            blocks = random_blocks(format, count, sizes[-1] ** -0.5 if len(sizes) > 1 else 0.02, rng)
            pools[kind] = np.ones(count, np.float32).view(np.uint8) if "norm" in name else blocks.reshape(-1)
        pool = pools[kind]
        at = i * 997 * block % len(pool)
        while size:
            part = min(size, len(pool) - at)
            jobs.append((pool[at : at + part], start + place))
            place, size, at = place + part, size - part, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for job, written in zip(jobs, threads.map(lambda job: os.pwrite(file, *job), jobs)):
            if written != len(job[0]):
                sys.exit("a model's file was not written as a whole")


def said(command):
    """A program's JSON, and what it says beside it."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-4000:]}\nended with status {done.returncode}")
    return json.loads(done.stdout), done.stderr


def measured(directory, path, package, is_tiny):
    """The columns of rows from `test` on, of both programs, and the device's name."""
    prompts, tokens = ("64", "8") if is_tiny else ("512,4096", "128")
    common = ["-p", prompts, "-n", tokens, "-r", "3"]
    theirs, log = said([directory / "llama-bench", "-m", path, "-ngl", "99", "-fa", "0,1", "-ub", "512,2048", "-o", "json", *common])
    ours, _ = said([directory / "greta-llm", "bench", package, path, "--device=vulkan", "--quiet", "--json", *common])
    matrices = re.search(r"matrix cores: (\S+)", log)
    version = f"{(directory / 'llama.cpp.txt').read_text().strip()}; {theirs[0]['backends']}; matrix cores: {matrices[1] if matrices else ''}"
    rows = []
    for program, answers in (("llama.cpp", theirs), ("greta-llm", ours)):
        for row in answers:
            rows.append(
                dict(
                    test=f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}",
                    program=program,
                    version=version if program == "llama.cpp" else "",
                    options=f"-fa {int(row['flash_attn'])} -ub {row['n_ubatch']}" if program == "llama.cpp" else "",
                    tokens_per_second=f"{row['avg_ts']:.2f}",
                    deviation=f"{row['stddev_ts']:.2f}",
                )
            )
    return rows, ours[0]["gpu_info"]


def driver():
    if not shutil.which("nvidia-smi"):
        return ""
    return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True).stdout.split("\n")[0]


def compare(model, rows):
    """Prints both programs' tokens per second, llama.cpp's fastest."""
    for test in dict.fromkeys(row["test"] for row in rows):
        ours, theirs = ([row for row in rows if row["test"] == test and row["program"] == program] for program in ("greta-llm", "llama.cpp"))
        best = max(theirs, key=lambda row: float(row["tokens_per_second"]))
        speed, peer = (float(row["tokens_per_second"]) for row in (ours[0], best))
        print(f"{model} {test}: greta-llm {speed:.1f}, llama.cpp {peer:.1f} ({best['options']}), {speed / peer:.2f} times", flush=True)


def package_of(directory, model):
    return directory / f"{model.replace(':', '-')}.greta"


def compile_all(directory, models, is_tiny, targets):
    for model in models:
        with tempfile.TemporaryDirectory() as temporary:
            file = pathlib.Path(temporary) / "model.gguf"
            write(file, model, is_tiny, is_sparse=True)
            command = [records.ROOT / "build" / "bin" / "greta-llm", "compile", file, f"--targets={targets}", "-o", package_of(directory, model)]
            subprocess.run(command, check=True)


def run(directory, path, models, is_tiny, folder):
    """Whether all models were measured; one that fails is said, and the others follow."""
    is_whole = True
    for model in models:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            file = pathlib.Path(temporary) / "model.gguf"
            write(file, model, is_tiny)
            try:
                rows, device = measured(directory, file, package_of(directory, model), is_tiny)
            except RuntimeError as error:
                print(f"{model}: {error}", file=sys.stderr)
                is_whole = False
                continue
        name, _, mixture = model.partition(":")
        common = dict(date=datetime.date.today().isoformat(), commit=(directory / "commit").read_text(), gpu=device, driver=driver())
        common |= dict(model=name + "-tiny" * is_tiny, weights=mixture)
        compare(model, rows)
        records.append(path, COLUMNS, [common | row for row in rows])
    return is_whole


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
verbs = parser.add_subparsers(dest="verb", required=True)
compiles, runs = verbs.add_parser("compile"), verbs.add_parser("run")
compiles.add_argument("directory", type=pathlib.Path)
compiles.add_argument("--targets", default="vulkan:nvidia")
runs.add_argument("directory", type=pathlib.Path)
runs.add_argument("path", type=pathlib.Path)
runs.add_argument("--folder", help="with room for 19 GB; without it where temporary files are")
for verb in (compiles, runs):
    verb.add_argument("models", nargs="*")
    verb.add_argument("--tiny", action="store_true")
options = parser.parse_args()
directory, models = options.directory.resolve(), options.models or MODELS
if options.verb == "compile":
    compile_all(directory, models, options.tiny, options.targets)
elif not run(directory, options.path, models, options.tiny, options.folder):
    sys.exit(1)
