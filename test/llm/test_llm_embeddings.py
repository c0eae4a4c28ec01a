"""Models of embeddings: BERT's and Nomic's states against their definition (and that against transformers'), pooling, and what is refused."""

import base64
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import encoders
import models
from test_llm import TARGETS, WHOLE, assert_close, llm
from test_llm_serve import Server
from test_llm_tokenizer import ids, model_with
from texts import SCRIPTS

pytestmark = pytest.mark.xdist_group("llm-embeddings")  # one worker makes what these share
TOKENS = [101, 7, 300, 42, 42, 9, 250, 5, 180, 77, 3, 102]
DEVICES = "vulkan", "sim:gfx942"


@pytest.mark.parametrize("kind", encoders.KINDS)
def test_definition(tmp_path, kind):
    torch = pytest.importorskip("torch", reason="torch is not installed; scripts/setup --llm")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed; scripts/setup --llm")
    weights = encoders.random_weights(kind)
    folder = encoders.write_safetensors(tmp_path / kind, kind, weights)
    if kind == "nomic":  # as transformers' configuration has them
        about = dict(model_type="nomic_bert", hidden_size=encoders.WIDTH, intermediate_size=encoders.HIDDEN, num_hidden_layers=encoders.LAYERS, num_attention_heads=encoders.HEADS, layer_norm_eps=encoders.EPSILON, hidden_act="silu")
        (folder / "config.json").write_text(json.dumps(encoders.config("bert") | about))
    theirs = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        got = theirs(torch.tensor([TOKENS])).last_hidden_state[0].numpy()
    want = encoders.states(kind, weights, TOKENS)
    assert np.abs(got - want).max() / np.abs(want).max() < 2e-5


def embedded(*words):
    ran = llm("embed", *words, "-q")
    assert ran.returncode == 0, ran.stderr
    return np.array(json.loads(ran.stdout))


# Each on one device; GRETA_TEST_WHOLE=1: on both.
@pytest.mark.parametrize("kind, device", [(kind, device) for i, kind in enumerate(encoders.KINDS) for device in (DEVICES if WHOLE else DEVICES[i % 2 : i % 2 + 1])])
def test_embeddings(tmp_path, kind, device):
    weights, package = encoders.random_weights(kind), tmp_path / "m.greta"
    mean = encoders.write_safetensors(tmp_path / "mean", kind, weights, prefix="roberta." if "roberta" in kind else "bert.", tie_word_embeddings=False)
    made = llm("compile", mean, f"--targets={TARGETS[device]}", "-o", package)
    assert made.returncode == 0, made.stderr
    words = f"--device={device}", "--tokens=" + ",".join(map(str, TOKENS))
    got = embedded(package, mean, *words)
    assert np.linalg.norm(got) == pytest.approx(1, abs=1e-6)
    assert np.abs(got - encoders.embedding(kind, weights, TOKENS)).max() <= 2e-5
    # The same package is that of a GGUF file, and of the first token's state.
    cls = tmp_path / "m.gguf"
    encoders.write_gguf(cls, kind, weights, "f32", "cls")
    got = embedded(package, cls, *words)
    assert np.abs(got - encoders.embedding(kind, weights, TOKENS, "cls")).max() <= 2e-5
    one = embedded(package, cls, f"--device={device}", "--tokens=5")
    assert np.abs(one - encoders.embedding(kind, weights, [5])).max() <= 2e-5
    # The folder of the pooling's file is the one that modules.json names.
    first = encoders.write_safetensors(tmp_path / "first", kind, weights, pooling="cls_token")
    (first / "1_Pooling").rename(first / "pool")
    (first / "modules.json").write_text((first / "modules.json").read_text().replace("1_Pooling", "pool"))
    assert embedded(package, first, *words).tolist() == got.tolist()


def test_packed_weights(tmp_path):
    """Q4_0 stays in 4 bits; positions and types are looked up, or added."""
    path, package = tmp_path / "m.gguf", tmp_path / "m.greta"
    weights = encoders.write_gguf(path, "bert", encoders.random_weights("bert"), "q4_0")
    made = llm("compile", path, "--targets=gfx942", "-o", package)
    assert made.returncode == 0 and "12 matrices in q4_0, kept in 4 bits" in made.stdout, made.stderr
    got = embedded(package, path, "--device=sim:gfx942", "--tokens=" + ",".join(map(str, TOKENS)))
    assert_close(got[None], encoders.embedding("bert", weights, TOKENS)[None], "f16")


# WordPiece


WORDS = SCRIPTS | {
    "long": "a" * 100 + " " + "a" * 101 + " " + "é" * 60,
    "brackets": "[CLS] in [MASK] text[SEP]un[UNK]known [x] ##ing #",
    "signs": "a—b…c«d»¡e!¿f? 5$+3€ ~`^ a\u200bb\u00adc\u2028d\u0085e\x0bf\x7fg\ufeff",
    "letters": "İstanbul ΣΊΣΥΦΟΣ ẞ ǅ ﬁ Å ệ é̂̃ ḍ̇ 𝔘𝔫𝔦 𝟘 ⅷ ㊗ 㐀𠀀豈 한국어 ｶﾞ ガ",
}


def word_piece(kind):
    """A tokenizer of Hugging Face's library, with few letters of its scripts unknown."""
    library = pytest.importorskip("tokenizers", reason="tokenizers is not installed; scripts/setup --llm")
    from tokenizers import normalizers, pre_tokenizers, processors, trainers

    tokenizer = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]"))
    is_cased = kind == "cased"
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not is_cased, strip_accents=False if is_cased else None, handle_chinese_chars=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([text for name, text in WORDS.items() if name not in ("thai", "long")] * 2, trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    if is_cased:
        tokenizer.post_processor = processors.BertProcessing(*ends)
    else:
        tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def phantom(token):
    """As llama.cpp's converter spells it."""
    return token if token[0] == "[" and token[-1] == "]" else token[2:] if token.startswith("##") else "▁" + token


def gguf_vocabulary(tokenizer, is_cased):
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    about = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": [phantom(t) for t in tokens], "tokenizer.ggml.token_type": [3 if t[0] == "[" and t[-1] == "]" and len(t) > 1 else 1 for t in tokens]}
    # Numbers, or the usual names; whether letters are lowered, where they are not.
    return about | ({"tokenizer.ggml.normalizer.lowercase": False} if is_cased else {"tokenizer.ggml.cls_token_id": tokens.index("[CLS]"), "tokenizer.ggml.seperator_token_id": tokens.index("[SEP]"), "tokenizer.ggml.unknown_token_id": tokens.index("[UNK]")})


@pytest.fixture(scope="module")
def word_pieces(tmp_path_factory):
    known = {}

    def make(kind):
        if kind not in known:
            tokenizer, folder = word_piece(kind), tmp_path_factory.mktemp(kind)
            vocabulary = folder / "m.gguf"
            models.write_gguf(vocabulary, encoders.KINDS["bert"], {}, "f32", {"general.architecture": "bert"} | gguf_vocabulary(tokenizer, kind == "cased"))
            known[kind] = tokenizer, model_with(folder / "m", json.loads(tokenizer.to_str())), vocabulary
        return known[kind]

    return make


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("kind", ["uncased", "cased"])
def test_word_piece(word_pieces, kind, name):
    tokenizer, *files = word_pieces(kind)
    want = tokenizer.encode(WORDS[name])
    for file in files:
        assert ids(file, WORDS[name]) == want.ids, want.tokens
    assert ids(files[0], WORDS[name], "--no-special") == want.ids[1:-1]


# /v1/embeddings


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """BERT with a tokenizer, by the mean that sentence-transformers' files ask for."""
    folder = tmp_path_factory.mktemp("embeddings")
    weights = encoders.random_weights("bert")
    model = encoders.write_safetensors(folder / "m", "bert", weights, pooling="mean_tokens")
    (model / "tokenizer.json").write_text(json.dumps(plain_tokenizer()))
    made = llm("compile", model, "--targets=gfx942", "-o", folder / "m.greta")
    assert made.returncode == 0, made.stderr
    one = Server(folder / "m.greta", [model], "--queue=1", device="sim:gfx942")
    one.weights, one.model = weights, model
    yield one
    one.end()


def plain_tokenizer():
    """Letters alone."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{c}" for c in letters)]
    return {
        "added_tokens": [{"id": i, "content": tokens[i], "special": True} for i in range(4)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(tokens)}},
    }


def vectors(server, **body):
    status, text = server.request("/v1/embeddings", body)
    assert status == 200, text
    answer = json.loads(text)
    assert [one["index"] for one in answer["data"]] == list(range(len(answer["data"])))
    return [one["embedding"] for one in answer["data"]], answer["usage"]


def wanted(server, tokens):
    return encoders.embedding("bert", server.weights, tokens)


def test_server(server):
    abc, b = [2, 4, 4 + 26 + 1, 4 + 26 + 2, 3], [2, 5, 3]
    (got,), usage = vectors(server, input="ABC", model="m", user="u", dimensions=encoders.WIDTH)
    assert usage == {"prompt_tokens": 5, "total_tokens": 5}
    assert np.abs(np.array(got) - wanted(server, abc)).max() <= 2e-5
    both, usage = vectors(server, input=["abc", "b"], encoding_format="float")
    assert both[0] == got and np.abs(np.array(both[1]) - wanted(server, b)).max() <= 2e-5 and usage["total_tokens"] == 8
    # Tokens are taken as they are.
    assert vectors(server, input=abc)[0] == [got] and vectors(server, input=[b, abc])[0] == [both[1], got]
    (packed,), _ = vectors(server, input="abc", encoding_format="base64")
    assert np.frombuffer(base64.b64decode(packed), "<f4").tolist() == pytest.approx(got, rel=1e-7, abs=0)
    assert server.metric("requests_finished_total") >= 5 and server.metric("prompt_tokens_total") >= 31
    about = json.loads(server.request("/v1/models")[1])["data"][0]
    assert about["dimensions"] == encoders.WIDTH
    assert json.loads(server.request("/tokenize", {"content": "ab"})[1]) == {"tokens": [4, 31]}
    assert json.loads(server.request("/detokenize", {"tokens": [4, 31, 5]})[1]) == {"content": " ab b"}
    assert json.loads(server.request("/health")[1]) == {"status": "ok"}


@pytest.mark.parametrize("kind, device", list(zip(encoders.KINDS, DEVICES)))
def test_batches(tmp_path, kind, device):
    """Texts of several lengths go through the model together, and each is as if it were alone."""
    weights, package = encoders.random_weights(kind), tmp_path / "m.greta"
    model = encoders.write_safetensors(tmp_path / "m", kind, weights)
    (model / "tokenizer.json").write_text(json.dumps(plain_tokenizer()))
    assert llm("compile", model, f"--targets={TARGETS[device]}", "-o", package).returncode == 0
    rng = np.random.default_rng(5)
    sizes = [3, 48, 1, 7, 7, 20, 2, 33, 48, 12]
    texts = [rng.integers(0, encoders.VOCABULARY, size).tolist() for size in sizes]
    server = Server(package, [model], "--chunk=100", device=device)
    try:
        got, _ = vectors(server, input=texts)
        # 1, 2, 3, 7, 7 and 12 fill 72 rows, 20 and 33 66; two of 48 are 96.
        assert server.metric("passes_total") == 3
        for text, vector in zip(texts, got):
            assert np.abs(np.array(vector) - encoders.embedding(kind, weights, text)).max() <= 2e-5
        assert [vectors(server, input=text)[0][0] for text in texts] == got
    finally:
        server.end()


def test_openai_client(server):
    openai = pytest.importorskip("openai", reason="openai is not installed; scripts/setup --llm")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    answer = client.embeddings.create(model="m", input=["abc", "b"])  # the client asks for base64
    assert np.abs(np.array(answer.data[1].embedding) - wanted(server, [2, 5, 3])).max() <= 2e-5
    assert answer.usage.prompt_tokens == 8


@pytest.mark.parametrize(
    "body, says",
    [
        ({}, "'input' has to be a text, a list of tokens, or a list of such"),
        ({"input": []}, "'input' has to be a text, a list of tokens, or a list of such"),
        ({"input": ["a", 3]}, "'input' has 3 in place of a text or a list of tokens"),
        ({"input": ["a", []]}, "'input' has an empty text"),
        ({"input": [1, 320]}, "'input' has 320, which is no token of the model"),
        ({"input": [1, "a"]}, "'input' has \\\"a\\\", which is no token of the model"),
        ({"input": "a " * 47}, "a text of 'input' has more tokens than the 48 that the model takes"),
        ({"input": [7] * 49}, "a text of 'input' has more tokens than the 48 that the model takes"),
        ({"input": ["a", "ab " * 20000]}, "a text of 'input' has more tokens than the 48 that the model takes"),
        ({"input": ["a", "ab " * (1 << 20)]}, "a text of 'input' has 3145728 bytes; at most 68608 are read for the 48 tokens that the model takes"),
        ({"input": ["a"] * 2049}, "'input' has 2049 texts; up to 2048 are possible"),
        ({"input": [[7] * 48] * 2048, "model": 3}, "'model' has to be a text"),
        ({"input": "a", "encoding_format": "int8"}, "'encoding_format' has to be \\\"float\\\" or \\\"base64\\\""),
        ({"input": "a", "dimensions": 32}, "'dimensions' is 32; the model's embeddings have 64"),
        ({"input": "a", "truncate": True}, "truncate"),
    ],
)
def test_bad_requests(server, body, says):
    status, text = server.request("/v1/embeddings", body)
    assert status == 400 and says in text, text


def test_texts_of_many_bytes_and_few_tokens(tmp_path):
    """The number of bytes says nothing of that of tokens where a tokenizer leaves some out, or takes many as one."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = {
        "added_tokens": [{"id": i, "content": name, "lstrip": name == "<mask>", "special": True} for i, name in enumerate(special)],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "vocab": {t: i for i, t in enumerate([*special, "a", "b"])}, "merges": []},
    }
    model = changed(tmp_path / "m", "roberta", tokenizer)
    made = llm("compile", model, "--targets=gfx942", "-o", tmp_path / "m.greta")
    assert made.returncode == 0, made.stderr
    for pre_tokenizer in tokenizer["pre_tokenizer"], None:
        (model / "tokenizer.json").write_text(json.dumps(tokenizer | {"pre_tokenizer": pre_tokenizer}))
        server = Server(tmp_path / "m.greta", [model], device="sim:gfx942")
        try:
            for text, count in (("a" + " " * 5000, 3 if pre_tokenizer else 4), ("é" * 5000, 3), ("a" + " " * 5000 + "<mask>", 4)):
                assert vectors(server, input=text)[1]["prompt_tokens"] == count
            status, text = server.request("/v1/embeddings", {"input": "ab" * 5000})
            assert status == 400 and "has more tokens than the 48 that the model takes" in text
        finally:
            server.end()


def test_other_requests(server):
    for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}), ("/v1/completions", {"prompt": "a"}), ("/api/chat", {}), ("/v1/messages", {})):
        status, text = server.request(path, body)
        assert status == 400 and "the model is one of embeddings, which makes no texts; it answers /v1/embeddings" in text
    assert server.request("/")[0] == 404


def test_requests_that_share_a_pass(server):
    """A text that waits behind a long request goes through the model with texts of that, as if it were alone; so there are as many passes as texts fill."""
    alone, passes = vectors(server, input=[7] * 40)[0], server.metric("passes_total")
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(vectors, server, input=[[7] * 48] * 200)
        while server.metric("passes_total") == passes:
            time.sleep(0.01)
        assert vectors(server, input=[7] * 40)[0] == alone
        assert long.result()[0] == vectors(server, input=[7] * 48)[0] * 200
    assert server.metric("passes_total") - passes == -(-201 // (2048 // 48)) + 1


def test_full_queue_and_clients_that_leave(server):
    """Beside the one at work the queue takes one; who leaves frees his place, and texts of a long request are no longer in front of another's."""
    many = json.dumps({"input": [[7] * 48] * 2048}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\nContent-Length: {len(many)}\r\n\r\n"
    before, finished = server.metric("requests_cancelled_total"), server.metric("requests_finished_total")
    clients, deadline = [], time.time() + 60
    for _ in range(2):
        clients.append(socket.create_connection(("127.0.0.1", server.port)))
        clients[-1].sendall(head.encode() + many)
    while server.metric("requests_waiting") < 2 and time.time() < deadline:
        time.sleep(0.02)
    status, text = server.request("/v1/embeddings", {"input": "a"})
    assert status == 429 and "the queue is full; try again later" in text
    clients.pop().close()
    while status == 429 and time.time() < deadline:
        time.sleep(0.02)
        status, text = server.request("/v1/embeddings", {"input": ["a", "b"]})
    assert status == 200 and len(json.loads(text)["data"]) == 2, text
    # Nobody but the other long request is there, which is at work still.
    assert server.metric("requests_cancelled_total") == before + 1 and server.metric("requests_finished_total") == finished + 1
    while server.metric("requests_waiting") > 1 and time.time() < deadline:
        time.sleep(0.02)
    assert server.metric("requests_waiting") == 1
    clients.pop().close()
    while server.metric("requests_cancelled_total") < before + 2 and time.time() < deadline:
        time.sleep(0.05)
    assert server.metric("requests_cancelled_total") == before + 2
    assert len(vectors(server, input="a")[0]) == 1


# Refusals


def refused(says, *words):
    ran = llm(*words)
    assert ran.returncode == 1 and says in ran.stderr and ran.stderr.startswith("greta-llm: error: ") and ran.stderr.count("\n") == 1, ran.stderr


def changed(folder, kind="bert", tokenizer=None, **config):
    encoders.write_safetensors(folder, kind, encoders.random_weights(kind), pooling="mean_tokens", **config)
    if tokenizer:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


@pytest.mark.parametrize(
    "kind, config, says",
    [
        ("bert", dict(hidden_act="relu"), "the activation is 'relu'; greta-llm takes gelu for this model type"),
        ("bert", dict(is_decoder=True), "the field 'is_decoder' is true; greta-llm runs models where it is false"),
        ("bert", dict(position_embedding_type="relative_key"), "the field 'position_embedding_type' is \"relative_key\""),
        ("bert", dict(max_position_embeddings=512), "the weight 'position_embd' is 48x64; the model's sizes ask for 512x64"),
        ("bert", dict(hidden_size=32), "the weight 'token_types' is 2x64; the model's sizes ask for rows of 32"),
        ("bert", dict(max_position_embeddings=-1), "the context is -1; it has to be 1 to"),
        ("roberta", dict(pad_token_id=-1), "'pad_token_id' is no token"),
        ("roberta", dict(pad_token_id=99), "the context is -50; it has to be 1 to"),
        ("nomic", dict(rotary_emb_interleaved=True), "the field 'rotary_emb_interleaved' is true"),
        ("nomic", dict(prenorm=True), "the field 'prenorm' is true; greta-llm runs models where it is false"),
        ("nomic", dict(num_experts=8), "the field 'num_experts' (8) is not known to greta-llm"),
        ("nomic", dict(n_layer=4097), "the number of layers is 4097; it has to be 1 to 4096"),
    ],
)
def test_configurations(tmp_path, kind, config, says):
    refused(says, "compile", changed(tmp_path / "m", kind, **config), "--mlir")


def test_files(tmp_path):
    model = changed(tmp_path / "m", tokenizer=plain_tokenizer())
    pooling = model / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}))
    refused("greta-llm takes the mean of the tokens or the first one", "compile", model, "--mlir")
    pooling.write_text(json.dumps({"pooling_mode": "cls"}))
    modules = model / "modules.json"
    modules.write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    refused("has the module 'sentence_transformers.models.Dense'; greta-llm takes Transformer, Pooling and Normalize", "compile", model, "--mlir")
    for path in ("", "..", "a/../../m/1_Pooling", str(pooling.parent)):
        modules.write_text(json.dumps([{"type": "sentence_transformers.models.Pooling", "path": path}]))
        refused("has no module Pooling with the path of a folder in this one", "compile", model, "--mlir")
    modules.write_text(json.dumps([{"type": "sentence_transformers.models.Pooling", "path": "2_Pooling"}]))
    refused("m/2_Pooling/config.json", "compile", model, "--mlir")
    modules.unlink()
    refused("cannot be divided among 2 devices: it is a model of embeddings", "compile", model, "--shards=2", "--mlir")
    for verb in (["run", model], ["generate", model, "-p", "a"], ["logits", model, "--tokens=1", "-o", tmp_path / "l.npy"], ["bench", model], ["perplexity", model, "-f", pooling]):
        refused("is a model of embeddings, which makes no texts; the commands embed and serve run it", *verb)
    refused("makes texts, not embeddings; embed runs bert, roberta, xlm-roberta and nomic_bert", "embed", "--synthetic=tiny", "-p", "a")
    for token in (320, 2**32 + 5, 2**63 - 1):
        refused(f"there is no token {token}; the model has 320", "embed", model, f"--tokens=5,{token}")
    refused("the text has no tokens", "embed", model, "-p", "", "--no-special")
    package = tmp_path / "m.greta"
    assert llm("compile", model, "--targets=gfx942", "-o", package).returncode == 0
    refused("the text has 49 tokens; the model takes 48", "embed", package, model, "--device=sim:gfx942", "--tokens=" + ",".join(["5"] * 49), "-q")
    refused("was compiled for another model", "embed", package, changed(tmp_path / "n", "nomic"), "--device=sim:gfx942", "--tokens=5", "-q")
    path = tmp_path / "m.gguf"
    encoders.write_gguf(path, "bert", encoders.random_weights("bert"), "f32", 3)
    refused("'bert.pooling_type' is 3; greta-llm takes 1 (mean) and 2 (CLS)", "compile", path, "--mlir")
    encoders.write_gguf(path, "bert", encoders.random_weights("bert"), "f32", "mean", {"bert.attention.causal": True})
    refused("the field 'attention.causal' is true; greta-llm runs models where it is false", "compile", path, "--mlir")


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(max_input_chars_per_word=10**9), "the tokenizer's 'max_input_chars_per_word' is 1000000000; 1 to 200 are possible"),
        (dict(unk_token="[X]"), "the tokenizer has no token for unknown words"),
    ],
)
def test_tokenizers(tmp_path, change, says):
    tokenizer = plain_tokenizer()
    tokenizer["model"] |= change
    refused(says, "tokenize", changed(tmp_path / "m", tokenizer=tokenizer), "a")


def test_words_that_are_split_twice(tmp_path):
    tokenizer = plain_tokenizer()
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}]}
    assert ids(changed(tmp_path / "m", tokenizer=tokenizer), "ab  c,d", "--no-special") == [4, 4 + 26 + 1, 6, 1, 7]


@pytest.mark.parametrize(
    "other, says",
    [
        (dict(do_lower_case=False), "'do_lower_case' is false in tokenizer_config.json, and the normalizer of tokenizer.json does otherwise"),
        (dict(strip_accents=False), "'strip_accents' is false in tokenizer_config.json, and"),
        (dict(tokenize_chinese_chars=False), "'tokenize_chinese_chars' is false in tokenizer_config.json, and"),
        (dict(do_lower_case=True, strip_accents=None, tokenize_chinese_chars=True), None),
    ],
)
def test_two_files_of_a_tokenizer(tmp_path, other, says):
    model = changed(tmp_path / "m", tokenizer=plain_tokenizer())
    (model / "tokenizer_config.json").write_text(json.dumps(other))
    if says:
        refused(says, "tokenize", model, "a")
    else:
        assert ids(model, "Ab") == [2, 4, 4 + 26 + 1, 3]


def test_vocabularies(tmp_path):
    path = tmp_path / "m.gguf"
    models.write_gguf(path, encoders.KINDS["bert"], {}, "f32", {"general.architecture": "bert", "tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": ["▁a", "[CLS]"]})
    refused("the tokenizer has no token '[SEP]'", "tokenize", path, "a")
