"""What llama.cpp makes of models, in an environment of its own that has llama-cpp-python (scripts/llm-peer).

    PYTHON test/llm/llama_cpp_jobs.py JOBS

JOBS is a file of JSON, a list of steps in turn: {"quantise": MODEL, "to": MODEL, "formats": [[pattern of tensors' names, ggml's number], ..], "matrices": {name: columns}}
and {"logits": MODEL, "tokens": [..], "to": FILE}, rows of f32 for all tokens. A step that llama.cpp refuses ends it.
"""

import ctypes
import json
import pathlib
import sys

import llama_cpp
import numpy as np

Q8_0, F32 = 7, 0  # llama.cpp's types of files; the first lets each tensor have a format by its name
ERROR = 4  # a level of messages


def quantise(job):
    """Importance is one for each column, which formats of two bits and less do not go without."""
    params = llama_cpp.llama_model_quantize_default_params()
    formats = [(f"^{pattern}$".encode(), number) for pattern, number in job["formats"]]
    params.nthread, params.allow_requantize, params.pure, params.ftype = 1, True, True, Q8_0 if formats else F32
    params.tt_overrides = (llama_cpp.llama_model_tensor_override * (len(formats) + 1))(*formats, (None, 0))
    ones = {name: np.ones(columns, np.float32) for name, columns in job["matrices"].items()}
    importance = [(name.encode(), x.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), x.size) for name, x in ones.items()]
    if formats:
        params.imatrix = (llama_cpp.llama_model_imatrix_data * (len(importance) + 1))(*importance, (None, None, 0))
    return llama_cpp.llama_model_quantize(job["quantise"].encode(), job["to"].encode(), ctypes.byref(params)) == 0


def logits(job):
    """On one thread, all tokens at once, keys and values in f32, attention as it is written."""
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(job["logits"].encode(), params)
    if not model:
        return False
    params, tokens = llama_cpp.llama_context_default_params(), job["tokens"]
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_threads, params.n_threads_batch = 128, 128, 128, 1, 1
    params.type_k, params.type_v, params.flash_attn_type, params.offload_kqv = 0, 0, 0, False
    context = llama_cpp.llama_init_from_model(model, params)
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, True
    if not context or llama_cpp.llama_decode(context, batch):
        return False
    count = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    rows = [np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, i), (count,)) for i in range(len(tokens))]
    np.save(job["to"], np.stack(rows))
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return True


@llama_cpp.llama_log_callback
def say(level, text, _):
    if level == ERROR:
        sys.stderr.write(text.decode())


llama_cpp.llama_log_set(say, None)
llama_cpp.llama_backend_init()
for job in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    if not (quantise if "quantise" in job else logits)(job):
        sys.exit(f"llama.cpp refuses to make {job['to']}")
