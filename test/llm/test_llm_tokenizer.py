"""greta-llm's tokenizer: against the definition of byte-pair merges, and against Hugging Face's `tokenizers` in the forms that Llama 2 and 3, Mistral,
Qwen and GPT-2 have them, from tokenizer.json and from GGUF.
"""

import dataclasses
import json

import pytest

import models
import texts
from test_llm import llm
from texts import SCRIPTS

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace("{1,3}", "")
VOCABULARY = 1200
REASON = "tokenizers is not installed; scripts/setup --llm"


def model_with(folder, tokenizer):
    """A model of few weights whose tokenizer is this one."""
    size = max([*tokenizer["model"]["vocab"].values(), *(t["id"] for t in tokenizer["added_tokens"])]) + 1
    a = dataclasses.replace(models.ARCHITECTURES["llama2"], width=8, hidden=8, heads=1, key_heads=1, head_size=8, layers=1, tied=True)
    weights = models.random_weights(a)
    weights["token_embd.weight"] = weights["token_embd.weight"][:1].repeat(size, axis=0)
    models.write_safetensors(folder, a, weights)
    config = models.config(a) | {"vocab_size": size}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def ids(model, text, *options):
    ran = llm("tokenize", model, text, *options)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="session")
def naive(tmp_path_factory):
    tokenizer = texts.naive_tokenizer(120)
    return model_with(tmp_path_factory.mktemp("naive"), tokenizer), tokenizer


@pytest.mark.parametrize("script", SCRIPTS)
def test_definition(naive, script):
    model, tokenizer = naive
    assert ids(model, SCRIPTS[script]) == texts.naive_encode(tokenizer, SCRIPTS[script])


def trained(kind):
    """A tokenizer of Hugging Face's library, with the parts that this family's files have."""
    library = pytest.importorskip("tokenizers", reason=REASON)
    from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors, trainers

    bpe = library.models.BPE
    special = [AddedToken("<unk>", special=True), AddedToken("<s>", special=True), AddedToken("</s>", special=True), AddedToken("<|end|>", special=True)]
    if kind in ("llama2", "mistral"):
        tokenizer = library.Tokenizer(bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        if kind == "llama2":
            tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        else:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
        tokenizer.decoder = decoders.ByteFallback()
        initial = []
        special += [AddedToken(f"<0x{b:02X}>", normalized=False) for b in range(256)]
    else:
        tokenizer = library.Tokenizer(bpe(ignore_merges=kind == "llama3"))
        if kind == "qwen":
            tokenizer.normalizer = normalizers.NFC()
        if kind == "gpt2":
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        else:
            split = pre_tokenizers.Split(Regex(QWEN if kind == "qwen" else LLAMA3), "isolated")
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.decoder = decoders.ByteLevel()
        initial = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=initial, show_progress=False)
    # Not all of it: the rest is unknown characters.
    tokenizer.train_from_iterator([SCRIPTS[s] for s in SCRIPTS if s not in ("emoji", "thai")] * 3, trainer)
    if kind != "gpt2":
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    if kind in ("llama2", "mistral"):
        # In the vocabulary, yet not cut out of texts.
        described = json.loads(tokenizer.to_str())
        described["added_tokens"] = [t for t in described["added_tokens"] if not t["content"].startswith("<0x")]
        tokenizer = library.Tokenizer.from_str(json.dumps(described))
    return tokenizer


@pytest.fixture(scope="session")
def families(tmp_path_factory):
    known = {}

    def make(kind):
        if kind not in known:
            tokenizer = trained(kind)
            known[kind] = tokenizer, model_with(tmp_path_factory.mktemp(kind), json.loads(tokenizer.to_str()))
        return known[kind]

    return make


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("kind", ["llama2", "llama3", "mistral", "qwen", "gpt2"])
def test_hugging_face(families, kind, script):
    tokenizer, model = families(kind)
    text = SCRIPTS[script]
    assert ids(model, text) == tokenizer.encode(text).ids
    assert ids(model, text, "--no-special") == tokenizer.encode(text, add_special_tokens=False).ids


def test_tokens_behind_bars(families, tmp_path):
    """A token that is normalised has Llama 2's bar before it, too, and takes that of the text."""
    library = pytest.importorskip("tokenizers", reason=REASON)
    tokenizer = library.Tokenizer.from_str(families("llama2")[0].to_str())
    tokenizer.add_tokens([library.AddedToken(token, normalized=True) for token in ("<|x|>", "two words")])
    model = model_with(tmp_path / "m", json.loads(tokenizer.to_str()))
    for text in ("<|x|>one", "a <|x|> b<|x|>", "b <|end|> <|x|>c</s><|x|>", "of two words, two  words"):
        assert ids(model, text) == tokenizer.encode(text).ids


@pytest.fixture(scope="session")
def gguf_files(tmp_path_factory, families):
    """The same tokenizers in GGUF's metadata."""
    known = {}

    def make(kind):
        if kind not in known:
            tokenizer, _ = families(kind)
            described = json.loads(tokenizer.to_str())
            tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
            added = {t["content"] for t in described["added_tokens"]}
            merges = [m if isinstance(m, str) else " ".join(m) for m in described["model"]["merges"]]
            a = dataclasses.replace(models.ARCHITECTURES["llama2"], width=8, hidden=8, heads=1, key_heads=1, head_size=8, layers=1, tied=True)
            metadata = models.gguf_metadata(a) | {
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.pre": {"llama3": "llama-bpe", "qwen": "qwen2", "gpt2": "gpt-2"}[kind],
                "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.token_type": [3 if t in added else 1 for t in tokens],
                "tokenizer.ggml.merges": merges,
                "tokenizer.ggml.bos_token_id": tokens.index("<s>"),
                "tokenizer.ggml.add_bos_token": kind != "gpt2",
            }
            weights = models.random_weights(a)
            weights["token_embd.weight"] = weights["token_embd.weight"][:1].repeat(len(tokens), axis=0)
            path = tmp_path_factory.mktemp(kind) / "m.gguf"
            models.write_gguf(path, a, weights, "f32", metadata)
            known[kind] = path
        return known[kind]

    return make


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("kind", ["llama3", "qwen", "gpt2"])
def test_gguf(families, gguf_files, kind, script):
    tokenizer, _ = families(kind)
    assert ids(gguf_files(kind), SCRIPTS[script]) == tokenizer.encode(SCRIPTS[script]).ids
