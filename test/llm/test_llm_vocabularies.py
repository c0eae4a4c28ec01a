"""GGUF's tokenizers as llama.cpp's vocabularies have them: of each the part that one text needs, with the ids that the model's own tokenizer gives
(vocabularies.json, which scripts/llm-vocabularies --record made). The files have no weights.
"""

import json
import pathlib
import struct

import pytest

import models
import texts
from test_llm import llm

CASES = json.loads((pathlib.Path(__file__).parent / "vocabularies.json").read_text())


def write_vocabulary(path, case):
    """A GGUF file with a vocabulary alone, of an architecture that greta-llm need not know."""
    metadata = {"general.architecture": "none", "tokenizer.ggml.add_bos_token": False} | {f"tokenizer.ggml.{key}": value for key, value in case.items() if key not in ("text", "ids")}
    values = b"".join(models.gguf_string(key) + struct.pack("<I", (v := models.gguf_value(value))[0]) + v[1] for key, value in metadata.items())
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(metadata)) + values)
    return path


@pytest.mark.parametrize("name", CASES)
def test_recorded(tmp_path, name):
    case = CASES[name]
    ran = llm("tokenize", "--no-special", write_vocabulary(tmp_path / "v.gguf", case), "--", case["text"])
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == case["ids"]


# Names without a vocabulary there: (pattern's name, text, what it is split into), from the definition of the pattern.
SPLITS = [
    ("gpt-4o", "HTMLParser's don't 12345 a/b//\n", ["HTMLParser's", " don't", " ", "123", "45", " a", "/b", "//\n"]),
    ("gpt-4o", "aBc", ["a", "Bc"]),
    ("tekken", "HTMLParser's 12", ["HTMLParser", "'s", " ", "1", "2"]),
    ("dbrx", "aBc's 12345", ["aBc", "'s", " ", "123", "45"]),
    ("glm4", "aBc's 12345", ["aBc", "'s", " ", "123", "45"]),
    ("smollm", "a12 'sb", ["a", "1", "2", " '", "sb"]),
    ("deepseek-v3", "12345.abc 漢字かな", ["123", "45", ".abc", " ", "漢字かな"]),
    ("megrez", "aB's 12 e\u0301", ["aB", "'s", " ", "1", "2", " e", "\u0301"]),
    ("default", "it's 12345 abc!?x $5", ["it", "'", "s", " ", "123", "45", " abc", "!?", "x", " ", "$", "5"]),
    ("", "a1b", ["a", "1", "b"]),
]


@pytest.mark.parametrize("pre, text, pieces", SPLITS)
def test_split(tmp_path, pre, text, pieces):
    """A vocabulary in which every two neighbours of the text join, left to right: pieces are then tokens as a whole."""
    alphabet = texts.byte_alphabet()
    tokens, merges = list(alphabet.values()), []
    spelled = "".join(alphabet[b] for b in text.encode())
    for begin in range(len(spelled)):
        for end in range(begin + 2, len(spelled) + 1):
            if (token := spelled[begin:end]) not in tokens:
                tokens.append(token)
            if (merge := f"{token[:-1]} {token[-1]}") not in merges:
                merges.append(merge)
    merges.sort(key=lambda merge: spelled.find(merge.replace(" ", "", 1)))
    case = {"model": "gpt2", "pre": pre, "tokens": tokens, "merges": merges}
    ran = llm("tokenize", "--no-special", write_vocabulary(tmp_path / "v.gguf", case), "--", text)
    assert ran.returncode == 0, ran.stderr
    assert ("names no pattern of its tokenizer" in ran.stderr) == (pre in ("", "default"))
    assert [tokens[i] for i in json.loads(ran.stdout)] == ["".join(alphabet[b] for b in piece.encode()) for piece in pieces]


def test_weights_without_vocabulary(tmp_path):
    """A file without weights is a vocabulary's only where it has one, and no model."""
    ran = llm("tokenize", write_vocabulary(tmp_path / "v.gguf", {}), "x")
    assert ran.returncode == 1 and "the architecture 'none' is not known" in ran.stderr
    ran = llm("compile", write_vocabulary(tmp_path / "v.gguf", CASES["gpt-2"]), "--mlir")
    assert ran.returncode == 1 and "the architecture 'none' is not known" in ran.stderr
