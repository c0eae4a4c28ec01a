"""Every diagnostic of the compiler and its tools has a test: some words of each message stand under test/."""

import collections
import pathlib
import re

from conftest import ROOT

# The simulator's tests compare its reports as a whole.
FOLDERS = ("dialects", *(f"lib/{folder.name}" for folder in sorted((ROOT / "lib").iterdir()) if folder.is_dir() and folder.name != "Sim"),
           "tools/greta-llm", "tools/greta-opt", "tools/greta-run", "tools/greta-translate", "tools/greta-tune")
# The beginning of a diagnostic; it ends with the statement.
CALL = re.compile(r"\b(?:emitError|emitOpError|emitWarning|createStringError|runtime_error|bad\w*|error|fail|reject|unsupported)\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
STATEMENT = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"|[^";])*')
WORDS = 3  # in a row, so that no other message is meant by chance

# Messages without a test: (file, how the message begins).
EXCEPTIONS = {
    "LLVM, lld, libzip or the system would have to fail": (
        ("lib/Lane/ExpandMath.cpp", "has functions whose expansion does not end"),
        ("lib/Package/Archive.cpp", "cannot write the archive: "),
        ("lib/Package/Archive.cpp", "cannot write the archive: out of memory"),
        ("lib/Package/Archive.cpp", "cannot read the archive back"),
        ("lib/Host/HostEmit.cpp", "no code generator for this host: "),
        ("lib/Host/HostLowering.cpp", "cannot be tiled for the host"),
        ("lib/AMDGPU/Hsaco.cpp", "LLVM failed to generate code for "),
        ("lib/Link/Lld.cpp", "cannot make a temporary directory: "),
        ("lib/Link/Lld.cpp", "cannot read what lld wrote"),
        ("lib/SPIRV/SpirvEmitter.cpp", "was translated, but not serialized, to SPIR-V"),
        ("tools/greta-llm/server/Chat.cpp", "no file in memory: "),
        ("tools/greta-llm/Compile.cpp", "cannot make a pipe: "),
        ("tools/greta-llm/server/Http.cpp", "libmicrohttpd did not start"),
        ("tools/greta-run/Npy.cpp", "cannot be read"),
        ("tools/greta-tune/Device.cpp", "the device measures no time"),
    ),
    "the pass before rules it out; a pass does not trust that": (
        ("lib/Lane/DistributeContract.cpp", "has an operand whose registers do not follow its result's"),
        ("lib/Lane/DistributeDot.cpp", "has operands that are not laid out for its accumulator; convert_layout first"),
        ("lib/Lane/DistributeDot.cpp", "has operands whose K is not in registers"),
        ("lib/Lane/DistributeExchange.cpp", "cannot reduce this layout: "),
        ("lib/Lane/DistributeExchange.cpp", "cannot convert between these layouts: "),
        ("lib/Lane/DistributeLocal.cpp", "uses a local; it is stored to and loaded from"),
        ("lib/AMDGPU/TileToROCDL.cpp", "target '"),
        ("lib/TritonToTile/ConvertDescriptors.cpp", "uses a descriptor that neither this kernel nor its caller made"),
        ("lib/SPIRV/TileToSPIRV.cpp", "has several blocks; greta-tile-to-spirv takes structured control flow (scf)"),
        ("lib/SPIRV/TileToSPIRVMemory.cpp", "allocates "),
        ("lib/Configure/Configure.cpp", "reduces rows of a dynamic length; give the last dimension in the type"),
        ("lib/Tile/Layouts/DotLayouts.cpp", "no layout for an accumulator of "),
        ("lib/Fuse/FuseNormalize.cpp", "has an extent that follows from no argument; derive it from a tensor.dim of an argument"),
        ("lib/Fuse/FuseSpace.cpp", "splits the columns of something that is no GEMM; expand the tensor before the kernel"),
        ("lib/Fuse/FuseSpace.cpp", "has a space that yields "),
    ),
}


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
    said = collections.Counter(fragment for own in {frozenset(fragments(m)) for _, m in messages} for fragment in own)
    for place, literals in messages:
        own = fragments(literals)
        distinct = [f for f in own if said[f] == 1] or own
        if distinct and not any(f" {fragment} " in tests for fragment in distinct):
            yield place, literals[0]


def test_every_message_is_expected_somewhere():
    files = [p for p in (ROOT / "test").rglob("*") if p.is_file() and p.suffix in (".mlir", ".py", ".test", ".cpp", ".h") and p != pathlib.Path(__file__)]
    tests = " " + " ".join(" ".join(words(p.read_text(errors="replace").replace("\\", ""))) for p in files) + " "
    said = list(messages())
    excepted = {message for reason in EXCEPTIONS.values() for message in reason}
    missing = set(untested(said, tests)) - excepted
    assert not missing, "messages without a test:\n" + "\n".join(map(str, sorted(missing)))
    gone = excepted - {(place, literals[0]) for place, literals in said}
    assert not gone, "exceptions that no message is:\n" + "\n".join(map(str, sorted(gone)))
