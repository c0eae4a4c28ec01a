"""greta-llm's tokenizers of RoBERTa and XLM-R against Hugging Face's `tokenizers`: byte-pair merges between <s> and </s>, and unigrams, with SentencePiece's
table of characters before them.
"""

import base64
import dataclasses
import json
import struct

import pytest

import models
from test_llm_embeddings import WORDS, refused
from test_llm_tokenizer import ids, model_with
from texts import SCRIPTS

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
# Characters, and what stands for them; a cluster's first character may be enough.
MAP = {chr(0xFF21 + i): chr(0x41 + i) for i in range(26)} | {
    "\u3000": " ", "\t": " ", "\n": " ", "\u00a0": " ", "\u200b": "", "\u00ad": "", "…": "...", "ﬁ": "fi", "①": "1", "㎡": "m2", "e\u0301": "é", "Å": "Å", "a\u0302": "â",
    "o": "0", "ｶ": "カ", "ﾞ": "\u3099", "𝔘": "U", "ẞ": "SS", "가": "가",
}


def charsmap(pairs):
    """The table as SentencePiece writes it: a trie as darts-clone's double array, and texts that end with a zero."""
    texts, root = b"", {}
    for key, value in pairs.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = len(texts)
        texts += value.encode() + b"\0"
    units, used, bases = {0: 0}, {0}, set()

    def place(node, at):
        base = next(b for b in range(1, 1 << 20) if b not in bases and all(b ^ byte not in used and b ^ byte for byte in node))
        bases.add(base)
        used.update(base ^ byte for byte in node)
        units[at] |= (at ^ base) << 10 | (0x100 if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = 1 << 31 | child if byte == 0 else byte
        for byte, child in node.items():
            if byte:
                place(child, base ^ byte)

    place(root, 0)
    size = max(units) | 0xFF
    trie = struct.pack(f"<{size + 1}I", *(units.get(i, 0) for i in range(size + 1)))
    return struct.pack("<I", len(trie)) + trie + texts


def made(kind):
    library = pytest.importorskip("tokenizers", reason="tokenizers is not installed; scripts/setup --llm")
    from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors, trainers

    texts = [text for name, text in WORDS.items() if name not in ("thai", "long")] * 3
    if kind == "roberta":
        tokenizer = library.Tokenizer(library.models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        tokenizer.train_from_iterator(texts, trainer)
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    else:
        tokenizer = library.Tokenizer(library.models.Unigram())
        table = normalizers.Precompiled(charsmap(MAP))
        assert table.normalize_str("Ａo\u0301 ﬁ") == "A0 fi"
        metaspace = pre_tokenizers.Metaspace(prepend_scheme="always")
        if kind == "xlm-roberta":
            tokenizer.normalizer = table
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
        else:  # as it is converted from SentencePiece's file
            tokenizer.normalizer = normalizers.Sequence([table, normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
            tokenizer.pre_tokenizer = metaspace
        trainer = trainers.UnigramTrainer(vocab_size=600, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
        tokenizer.train_from_iterator(texts, trainer)
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
        tokenizer.add_tokens([AddedToken("ＱZ①", normalized=True), AddedToken("ﬁx", normalized=True, lstrip=True), AddedToken("ＱQZ", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    known = {}

    def make(kind):
        if kind not in known:
            tokenizer = made(kind)
            known[kind] = tokenizer, written(tmp_path_factory.mktemp(kind), json.loads(tokenizer.to_str()), tokenizer.get_vocab_size())
        return known[kind]

    return make


MORE = WORDS | {
    "spaces": "  a  b   c \u3000\t d ▁ e▁f  ",
    "map": "ＡＢＣ ﬁn … ① 5㎡ cafe\u0301 e\u0301\u0302 o\u0301 a\u0302\u0323 Å \u200b x\u00ady ｶﾞ 𝔘𝔫 ẞ 가 한",
    "mask": "a <mask> b  <mask>c<s></s><unk>",
    "mask behind spaces": "a\u00a0<mask> b\u3000 \t<mask>c\u2028\x85<mask>d\x1c<mask>é<mask>",
    "unknown": "ꙮꙮ aꙮ ꙮꙮꙮb",
    "one": "a",
    "normalised": "QZ1 ＱZ① aQZ①b  fix ﬁx<mask>ﬁx ＱQZ1 QQZ1",
}


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "sentencepiece"])
def test_tokens(tokenizers, kind, name):
    tokenizer, model = tokenizers(kind)
    want = tokenizer.encode(MORE[name])
    assert ids(model, MORE[name]) == want.ids, want.tokens
    assert ids(model, MORE[name], "--no-special") == tokenizer.encode(MORE[name], add_special_tokens=False).ids


def in_gguf(path, tokens, **described):
    a = dataclasses.replace(models.ARCHITECTURES["llama2"], width=8, hidden=8, heads=1, key_heads=1, head_size=8, layers=1, tied=True)
    weights = models.random_weights(a)
    weights["token_embd.weight"] = weights["token_embd.weight"][:1].repeat(len(tokens), axis=0)
    own = {"model": "t5", "tokens": tokens, "unknown_token_id": tokens.index("<unk>")} | described
    models.write_gguf(path, a, weights, "f32", models.gguf_metadata(a) | {f"tokenizer.ggml.{name}": value for name, value in own.items() if value is not None})
    return path


@pytest.fixture(scope="module")
def xlm_roberta_file(tokenizers, tmp_path_factory):
    """As llama.cpp converts the model."""
    tokenizer, _ = tokenizers("xlm-roberta")
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    tokens, scores = [token for token, _ in vocabulary], [score for _, score in vocabulary]
    types = [2 if token == "<unk>" else 3 if token in SPECIAL else 1 for token in tokens]
    flags = {f"add_{name}": True for name in ("bos_token", "eos_token", "space_prefix")} | dict(remove_extra_whitespaces=True, bos_token_id=0, eos_token_id=2)
    return in_gguf(tmp_path_factory.mktemp("gguf") / "m.gguf", tokens, scores=scores, token_type=types, precompiled_charsmap=charsmap(MAP), **flags)


@pytest.mark.parametrize("name", [*(name for name in SCRIPTS if name not in ("spaces", "special")), "unknown", "one"])
def test_unigrams_in_gguf(tokenizers, xlm_roberta_file, name):
    """Texts without white space that the table leaves, and without bars behind spaces: there the two differ."""
    tokenizer, _ = tokenizers("xlm-roberta")
    assert ids(xlm_roberta_file, MORE[name]) == tokenizer.encode(MORE[name]).ids


def test_how_gguf_writes_unigrams(tmp_path):
    """llama.cpp's rules where those of Hugging Face's library differ, or have no name in it."""
    tokens = ["<pad>", "</s>", "<unk>", "a", "▁", "▁a", "b", "▁b", "x", "own", "▁▁", "aown"]
    scores, types = [0.0, 0.0, 0.0, -1.0, -1.5, -2.0, -1.0, -2.0, -1.0, -9.0, -2.0, -50.0], [3, 3, 2, 1, 1, 1, 1, 1, 1, 4, 1, 1]

    def file(**change):
        table = charsmap({"q": "b", "qa": "x", "\u3000": " "})
        return in_gguf(tmp_path / "m.gguf", tokens, **dict(scores=scores, token_type=types, precompiled_charsmap=table, eos_token_id=1) | change)

    model = file(add_space_prefix=True)
    assert ids(model, "a") == [5, 1]  # behind it what T5 wants
    assert ids(model, "aqab") == [5, 8, 6, 1]  # at each character the longest text that the table has
    assert ids(model, "  a\u3000b ") == [10, 5, 7, 4, 1]  # the prefix comes before the first word, not before the first space
    assert ids(model, "ownazz") == [9, 5, 2, 1]  # a user's token by itself
    assert ids(file(remove_extra_whitespaces=True), "  a\u3000 b ") == [5, 7, 1]
    assert ids(file(add_eos_token=False), "a b") == [3, 7]
    refused("the tokenizer has no score for each token", "tokenize", file(scores=[0.0]), "a")
    refused("the tokenizer's 'precompiled_charsmap' has a trie of", "tokenize", file(precompiled_charsmap=b"abcdefgh"), "a")
    refused("the tokenizer has the id 12, the model 12 tokens", "tokenize", file(unknown_token_id=12), "a")
    refused("the tokenizer has no token for unknown characters", "tokenize", file(unknown_token_id=None, token_type=[1] * 12), "a")


def test_roberta_in_gguf(tokenizers, tmp_path):
    tokenizer, _ = tokenizers("roberta")
    described = json.loads(tokenizer.to_str())
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in described["model"]["merges"]]
    types = [3 if token in (*SPECIAL, "<mask>") else 1 for token in tokens]
    model = in_gguf(tmp_path / "m.gguf", tokens, token_type=types, model="gpt2", pre="roberta-bpe", merges=merges, add_bos_token=True, add_eos_token=True, bos_token_id=0, eos_token_id=2)
    assert ids(model, MORE["spaces"]) == tokenizer.encode(MORE["spaces"]).ids


def unigram(**change):
    return {
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
        "post_processor": None,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -1.0], ["ab", -2.0], ["ba", -1.5]]} | change,
    }


def written(folder, tokenizer, size=9):
    model = model_with(folder, {"model": {"vocab": {str(i): i for i in range(size)}}, "added_tokens": []})
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    return model


def test_the_best_sum_counts(tmp_path):
    model = written(tmp_path, unigram())
    assert ids(model, "aba") == [1, 4]  # -2.5, as ab and a would be -3
    assert ids(model, "ab") == [3]  # of two equal sums the one that is found first
    assert ids(model, "xxaxx") == [0, 1, 0]


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(vocab={"a": 0}), "the tokenizer's model 'Unigram' is not one that greta-llm knows"),
        (dict(vocab=[["a", 0.0], ["b", "x"]]), "the tokenizer's token 1 is no text with a finite score, or is there twice"),
        (dict(vocab=[["a", 0.0], ["a", -1.0]]), "the tokenizer's token 1 is no text with a finite score, or is there twice"),
        (dict(vocab=[["", 0.0]]), "the tokenizer's token 0 is no text with a finite score, or is there twice"),
        (dict(vocab=[["a", 0.0]] + [[f"b{i}", 0.0] for i in range(9)]), "the tokenizer has the id 9, the model 9 tokens"),
        (dict(unk_id=None), "the tokenizer's 'unk_id' is null, which is none of its 5 tokens"),
        (dict(unk_id=5), "the tokenizer's 'unk_id' is 5, which is none of its 5 tokens"),
        (dict(unk_id=-1), "the tokenizer's 'unk_id' is -1, which is none of its 5 tokens"),
        (dict(vocab=[]), "the tokenizer's 'unk_id' is 0, which is none of its 0 tokens"),
        (dict(byte_fallback=True), "the tokenizer is a Unigram with byte_fallback"),
    ],
)
def test_wrong_vocabularies(tmp_path, change, says):
    refused(says, "tokenize", written(tmp_path, unigram(**change)), "a")


@pytest.mark.parametrize(
    "table, says",
    [
        (b"", "the tokenizer's 'precompiled_charsmap' has a trie of 0 bytes in 0"),
        ("a", "the tokenizer's 'precompiled_charsmap' is no base64"),
        ("a?==", "the tokenizer's 'precompiled_charsmap' is no base64"),
        (struct.pack("<II", 8, 0), "the tokenizer's 'precompiled_charsmap' has a trie of 8 bytes in 8"),
        (struct.pack("<III", 6, 0, 0), "the tokenizer's 'precompiled_charsmap' has a trie of 6 bytes in 12"),
        (charsmap({"c": "X"}) + b"\xf0", "the tokenizer's 'precompiled_charsmap' has a text that is no UTF-8"),
        (charsmap({"c": "X"}) + b"\xed\xa0\x80", "the tokenizer's 'precompiled_charsmap' has a text that is no UTF-8"),
        (charsmap({"c": "X", "d": "a" * 65}), "the tokenizer's 'precompiled_charsmap' has a text of more than 64 bytes"),
        (charsmap({"c": "X"}) + b"a" * 65, "the tokenizer's 'precompiled_charsmap' has a text of more than 64 bytes"),
    ],
)
def test_wrong_tables(tmp_path, table, says):
    tokenizer = unigram()
    tokenizer["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode() if isinstance(table, bytes) else table}
    refused(says, "tokenize", written(tmp_path, tokenizer), "a")


def with_table(folder, table):
    tokenizer = unigram()
    tokenizer["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}
    return written(folder, tokenizer)


def test_longest_texts(tmp_path):
    assert ids(with_table(tmp_path, charsmap({"c": "b" * 64, "d": "a"})), "cd") == [2] * 63 + [4]


def test_places_outside_a_table(tmp_path):
    """A trie that leads out of itself, to no text, or into a character, changes nothing."""

    def table(first, letter, rest=(), texts=b""):
        """The root's children are at 0x60 ^ byte; `letter` is at 1, that of an "a"."""
        units = [0x60 << 10, *[0] * 511]
        units[0], units[1] = first, letter
        for place, unit in rest:
            units[place] = unit
        return struct.pack("<I", 4 * len(units)) + struct.pack("<512I", *units) + texts

    leaf = 0x100 | ord("a")  # one of its children is the number of a text, which is where the offset leads
    root, inside = 0x60 << 10, 3 << 10  # 1 ^ 3: the unit at 2
    ends = b"b\0\xc3\xa9\0"
    assert ids(with_table(tmp_path / "b", table(root, inside | leaf, [(2, 1 << 31)], ends)), "a") == [2]
    wrong = {
        "root": table(0xFFFFFC00, inside | leaf, [(2, 1 << 31)], ends),
        "leaf": table(root, 0x1FFFFF << 10 | leaf, [], ends),
        "number": table(root, inside | leaf, [(2, 1 << 31 | len(ends))], ends),
        "largest": table(root, inside | leaf, [(2, 0xFFFFFFFF)], ends),
        "no text": table(root, inside | leaf, [(2, 1 << 31)]),
        "inside": table(root, inside | leaf, [(2, 1 << 31 | 3)], ends),
    }
    for name, one in wrong.items():
        assert ids(with_table(tmp_path / name, one), "aba") == [1, 4], name


def test_spaces_beside_added_tokens(tmp_path):
    """White space is Unicode's."""
    tokenizer = unigram()
    tokenizer["added_tokens"] = [{"id": 7, "content": "<l>", "lstrip": True}, {"id": 8, "content": "<r>", "rstrip": True}]
    model = written(tmp_path, tokenizer)
    for space in " ", "\u00a0", "\u3000 \x85", "\n\u2028":
        assert ids(model, f"a{space}<l>b<r>{space}a") == [1, 7, 2, 8, 1]
        assert ids(model, f"{space}<l><r>{space}") == [7, 8]
    assert ids(model, "a\x1c<l>\u200b") == [1, 0, 7, 0]


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
SPLIT = {"type": "Split", "pattern": {"Regex": "b"}, "behavior": "Isolated", "invert": False}
SPACES, BERT = {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}
STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}
PREPEND, BAR = {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
LOWERS = {"type": "BertNormalizer", "lowercase": True}


@pytest.mark.parametrize(
    "normalizers, pre_tokenizers, says",
    [
        ([STRIP, {"type": "NFC"}], [], "the tokenizer's 'NFC' comes in an order that greta-llm does not carry out"),
        ([STRIP, LOWERS], [], "the tokenizer's 'BertNormalizer' comes in an order"),
        ([{"type": "NFC"}, LOWERS], [], "the tokenizer's 'BertNormalizer' comes in an order"),
        ([PREPEND, STRIP], [], "the tokenizer's 'Strip' comes in an order"),
        ([BAR, STRIP], [], "the tokenizer's 'Strip' comes in an order"),
        ([PREPEND, PREPEND], [], "the tokenizer's normalizer 'Prepend'"),
        ([], [METASPACE, SPACES], "the tokenizer's 'WhitespaceSplit' comes in an order"),
        ([], [SPLIT, SPACES], "the tokenizer's 'WhitespaceSplit' comes in an order"),
        ([], [SPLIT, METASPACE], "the tokenizer's 'Metaspace' comes in an order"),
        ([], [METASPACE, METASPACE], "the tokenizer's 'Metaspace' comes in an order"),
        ([], [SPLIT, BERT], "the tokenizer's 'BertPreTokenizer' comes in an order"),
        ([], [BYTES, SPLIT], "the tokenizer's 'Split' comes in an order"),
        ([], [BYTES, BYTES], "the tokenizer's 'ByteLevel' comes in an order"),
        ([], [SPLIT, BYTES | {"add_prefix_space": True}], "the tokenizer's 'ByteLevel' comes in an order"),
        ([], [BYTES], "the tokenizer has a ByteLevel with a Unigram or a WordPiece"),
        ([PREPEND], [METASPACE], "the tokenizer has a Prepend and a Metaspace"),
        ([BAR], [SPACES], "the tokenizer has a WhitespaceSplit behind a normalizer that writes '▁'"),
        ([], [SPACES, METASPACE | {"prepend_scheme": "first"}], "the tokenizer has a WhitespaceSplit before a Metaspace of the prepend_scheme 'first'"),
        ([LOWERS, {"type": "NFC"}, STRIP, PREPEND, BAR], [SPLIT], None),
        ([{"type": "NFC"}, STRIP], [SPACES, METASPACE, SPLIT], None),
        ([], [SPACES, SPACES, BERT, SPLIT], None),
    ],
)
def test_order_of_parts(tmp_path, normalizers, pre_tokenizers, says):
    tokenizer = unigram()
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": normalizers}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": pre_tokenizers}
    model = written(tmp_path, tokenizer)
    if says:
        refused(says, "tokenize", model, "a")
    else:
        assert ids(model, "a")[-1:] == [1]


@pytest.mark.parametrize(
    "token, says",
    [
        (dict(single_word=True), "the tokenizer has the token '<M>' of 'single_word'"),
        (dict(normalized=True), None),
        (dict(normalized=True, content="<m>"), None),
        (dict(normalized=False), None),
    ],
)
def test_added_tokens(tmp_path, token, says):
    added = {"id": 8, "content": "<M>", "special": True} | token
    tokenizer = unigram() | {"normalizer": LOWERS, "added_tokens": [added]}
    model = written(tmp_path, tokenizer)
    if says:
        refused(says, "tokenize", model, "a")
    else:
        assert ids(model, "a" + added["content"]) == [1, 8]
        # A token that is normalised is found in normalised texts, however they were written.
        assert (ids(model, "a<" + "mM"["m" in added["content"]] + ">") == [1, 8]) == added["normalized"]
