"""Every diagnostic of the compiler and its tools has a test: some words of each message stand under test/."""

import collections
import pathlib
import re

from conftest import ROOT

FOLDERS = ("dialects", "lib/Conversion", "lib/Layout", "lib/Package", "lib/Target", "lib/Transforms", "tools")
# What begins a diagnostic; it ends with the statement.
CALL = re.compile(r"\b(?:emitError|emitOpError|emitWarning|createStringError|runtime_error|bad|error|fail|reject|unsupported)\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
STATEMENT = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"|[^";])*')
WORDS = 3  # in a row, so that no other message is meant by chance


def words(text):
    return re.findall(r"\w[\w'-]*", text)


def messages():
    """(file, [literal]) per statement that reports something."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cpp")) + sorted((ROOT / folder).rglob("*.h")):
            text = re.sub(r"//.*", "", path.read_text())
            # Neighbouring literals are one; what a macro or a value stands between stays apart.
            text = re.sub(r'"\s*\n\s*"', "", text)
            for call in CALL.finditer(text):
                literals = LITERAL.findall(STATEMENT.match(text, call.start())[0])
                if literals:
                    yield str(path.relative_to(ROOT)), literals


def fragments(literals):
    """Every run of WORDS words of a literal; of shorter messages all there is."""
    found = [words(literal) for literal in literals]
    size = min(WORDS, max(map(len, found)))
    return {" ".join(f[first : first + size]) for f in found for first in range(len(f) - size + 1) if size}


def untested(messages, tests):
    """The messages of which no words stand in `tests`, leaving out words that other messages say, too."""
    said = collections.Counter(fragment for fragments_ in {frozenset(fragments(m)) for _, m in messages} for fragment in fragments_)
    for place, literals in messages:
        own = fragments(literals)
        distinct = [f for f in own if said[f] == 1] or own
        if distinct and not any(f" {fragment} " in tests for fragment in distinct):
            yield f"{place}: {max(literals, key=len)}"


def test_every_message_is_expected_somewhere():
    files = [p for p in (ROOT / "test").rglob("*") if p.is_file() and p.suffix in (".mlir", ".py", ".test", ".cpp", ".h") and p != pathlib.Path(__file__)]
    tests = " " + " ".join(" ".join(words(p.read_text(errors="replace").replace("\\", ""))) for p in files) + " "
    missing = list(untested(list(messages()), tests))
    assert not missing, "\n".join(missing)
