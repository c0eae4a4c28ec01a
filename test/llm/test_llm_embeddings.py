"""Models of embeddings: BERT's and Nomic's states against their definition (and that against transformers'), pooling, and what is refused."""

import json

import numpy as np
import pytest

import encoders
import models
from test_llm import TARGETS, WHOLE, llm
from test_llm_tokenizer import ids, model_with
from texts import SCRIPTS

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
@pytest.mark.parametrize("kind, device", [(kind, device) for i, kind in enumerate(encoders.KINDS) for device in (DEVICES if WHOLE else DEVICES[i : i + 1])])
def test_embeddings(tmp_path, kind, device):
    weights, package = encoders.random_weights(kind), tmp_path / "m.greta"
    mean = encoders.write_safetensors(tmp_path / "mean", kind, weights, prefix="bert.")
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
