"""Rules the repository keeps about itself: formatting, script syntax, file size, generated pages and tables."""

import ast
import csv
import datetime
import re
import subprocess
import sys

import pytest

from conftest import ROOT

CPP = (".cpp", ".h", ".c", ".hpp")


def tracked(*suffixes):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [n for n in names if n.endswith(suffixes) and (ROOT / n).exists()]


def test_clang_format():
    sources = tracked(*CPP)
    run = subprocess.run(["clang-format-22", "--dry-run", "-Werror", *sources], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:4000]


def test_the_root_has_what_it_should():
    files = "CMakeLists.txt CMakePresets.json CONTRIBUTING.md LICENSE README.md SECURITY.md pyproject.toml .clang-format .gitignore".split()
    folders = ".ci cmake dialects docs examples include lib python runtime scripts test tools".split()
    assert {name.split("/")[0] for name in tracked("") if name} == {*files, *folders}


def test_scripts_parse():
    scripts = [p for p in (*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run") if p.is_file() and p.read_text().startswith("#!/usr/bin/env bash")]
    assert scripts
    for script in scripts:
        run = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


def test_reference_pages_are_current():
    run = subprocess.run([ROOT / "scripts" / "reference-docs", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[:4000] + run.stderr


def test_stage_pages_are_current():
    run = subprocess.run([ROOT / "scripts" / "stage-docs", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[:4000] + run.stderr


def heading_anchor(heading):
    """The name that a heading has in a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")


def test_links_lead_somewhere():
    """Every link of a page to a file of the repository, and to a heading of it; every page of docs/ that code, tests and messages name."""
    broken = []
    for page in tracked(".md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = (ROOT / page).parent / path if path else ROOT / page
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE) if anchor and file.suffix == ".md" and file.exists() else []
            if not file.exists() or (anchor and anchor not in map(heading_anchor, headings)):
                broken.append(f"{page}: {target}")
    for name in tracked(*CPP, ".md", ".py", ".td", ".txt", ".test", ".toml"):
        broken += [f"{name}: {path}" for path in re.findall(r"\bdocs/[\w/-]+\.md\b", (ROOT / name).read_text(errors="replace")) if not (ROOT / path).exists()]
    assert not broken, "\n".join(broken)


def test_plots_are_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="Triton's requirements have matplotlib")
    subprocess.run([sys.executable, ROOT / "docs" / "benchmarks" / "plots.py", tmp_path], check=True, capture_output=True)
    pictures = sorted(p.name for p in tmp_path.iterdir())
    assert pictures == ["history_compile_time.svg", "history_gemms.svg", "history_memory_bound.svg", "roofline.svg"]
    assert all((tmp_path / p).read_text().count("<use ") > 20 for p in pictures)  # marks


def test_tables_say_what_the_csv_files_say():
    run = subprocess.run([sys.executable, ROOT / "docs" / "benchmarks" / "tables.py", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[:4000] + run.stderr


BENCHMARKS = ROOT / "docs" / "benchmarks"


def measured_rows():
    return [(path.name, row) for path in sorted(BENCHMARKS.glob("*.csv")) for row in csv.DictReader(path.read_text().splitlines())]


def test_no_measured_row_is_of_uncommitted_code():
    assert not [f"{path.name}: {line}" for path in BENCHMARKS.iterdir() if path.is_file() for line in path.read_text().splitlines() if re.search(r"[0-9a-f]-dirty", line)]


def is_date(text):
    try:
        return datetime.date.fromisoformat(text) <= datetime.date.today() + datetime.timedelta(days=1)
    except (TypeError, ValueError):
        return False


def where_from(name, row):
    """Names the field of its origin that a row lacks; nothing if it has all."""
    if not is_date(row.get("date")):
        return "date"
    if not re.fullmatch(r"[0-9a-f]{7,}(\+[0-9a-f]{7,})?", row.get("commit") or ""):
        return "commit"
    if name.startswith("h200") and "H200" not in (row.get("gpu") or ""):
        return "gpu"
    if name.startswith("launch_") and not row.get("device"):
        return "device"
    return ""


def test_measured_rows_say_where_they_are_from():
    assert not {(name, lacks) for name, row in measured_rows() if (lacks := where_from(name, row))}


def test_a_row_without_origin_is_seen():
    row = dict(date="2026-11-22", commit="3cf6854", gpu="NVIDIA H200", device="llvmpipe")
    assert not where_from("h200.csv", row) and not where_from("launch_path.csv", row) and not where_from("h200.csv", row | dict(commit="f67efb9+b43344e"))
    for wrong, lacks in ((dict(date=""), "date"), (dict(date="22.11."), "date"), (dict(commit=""), "commit"), (dict(commit="3cf6854-dirty"), "commit"), (dict(gpu=""), "gpu"), (dict(gpu=None), "gpu")):
        assert where_from("h200.csv", row | wrong) == lacks
    assert where_from("launch_path.csv", row | dict(device="")) == "device" and where_from("simulator.csv", dict(mode="checks on")) == "date"


def test_measured_commits_are_in_the_history():
    """But for those that the page of benchmarks names; a shallow clone cannot tell."""
    if (ROOT / ".git" / "shallow").exists():
        pytest.skip("a shallow clone has no history")
    commits = {commit for _, row in measured_rows() for commit in row["commit"].split("+")}
    asked = subprocess.run(["git", "rev-list", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    lost = {commit for commit in commits if not any(full.startswith(commit) for full in asked)}
    named = re.search(r"\*\*Commits that are in no history\.\*\*(.*)", (BENCHMARKS / "README.md").read_text())[1]
    assert lost == set(re.findall(r"\b[0-9a-f]{7}\b", named))


def test_passes_verify_what_they_leave():
    """In production, too: nobody turns a pass manager's verifier off, and what is emitted outside of one is verified."""
    off = [n for n in tracked(*CPP) if n.startswith(("lib/", "tools/", "dialects/")) and "enableVerifier(" in (ROOT / n).read_text()]
    assert not off, off
    for emitter in ("lib/AMDGPU/Hsaco.cpp", "lib/SPIRV/SpirvEmitter.cpp"):
        assert "failed(verify(*" in (ROOT / emitter).read_text(), emitter


def test_one_function_of_the_runtime_reads_the_environment():
    """environment() of Process.cpp, which gives nothing to a process with more rights than its caller (SECURITY.md)."""
    readers = {n: re.findall(r"\b\w*getenv\b|\benviron\b", (ROOT / n).read_text()) for n in tracked(*CPP) if n.startswith("runtime/")}
    assert {n: found for n, found in readers.items() if found} == {"runtime/src/Process.cpp": ["secure_getenv"]}


def test_nothing_but_tests_trusts_the_environment():
    """Programs and libraries beside the runtime read it with secure_getenv (SECURITY.md)."""
    readers = [n for n in tracked(*CPP) if not n.startswith("test/") and re.search(r"(?<!secure_)\bgetenv\b", (ROOT / n).read_text())]
    assert not readers, readers


def test_files_are_small():
    long = {n: lines for n in tracked(*CPP, ".td", ".py") if (lines := (ROOT / n).read_text().count("\n")) > 650}
    assert not long, "split these: about 600 lines is the limit"


def long_functions(text):
    """The first lines and lengths of C++ functions, and of blocks in them, that have more than 100 lines. The text is clang-format's."""
    lines = text.split("\n")
    for indent in ("", "  "):
        head = re.compile(indent + r"[^\s}/#]")
        ends = [i for i, line in enumerate(lines) if line == indent + "}"]
        for end in ends:
            begin = next((i for i in range(end - 1, -1, -1) if head.match(lines[i])), end)
            if end - begin >= 100:
                yield lines[begin], end - begin + 1


def test_functions_are_short():
    """But for tests, which may list many cases."""
    long = {(n, head): length for n in tracked(*CPP) if not n.startswith("test/") for head, length in long_functions((ROOT / n).read_text())}
    for n in tracked(".py"):
        functions = (node for node in ast.walk(ast.parse((ROOT / n).read_text())) if isinstance(node, ast.FunctionDef))
        long |= {(n, f.name): length for f in functions if (length := f.end_lineno - f.lineno + 1) > 100}
    assert not long, "divide these: 100 lines is the limit"


def test_a_long_function_is_seen():
    body = "  x();\n" * 99
    assert not list(long_functions("int f() {\n" + body[7:] + "}\n"))
    assert list(long_functions("int f() {\n" + body + "}\n")) == [("int f() {", 101)]
    assert list(long_functions("struct S {\n  int f() {\n" + body.replace("  x", "    x") + "  }\n};\n")) == [("  int f() {", 101)]
    assert not list(long_functions("int table[] = {\n" + body + "};\n"))


def sentences(text, mark):
    """The sentences of a source's comments. A sentence may go over lines, but not over a line without a comment."""
    block = []
    for line in text.split("\n") + [""]:
        if comment := re.match(rf"\s*{mark}[/!<]*\s*(\S.*)", line):
            block.append(comment[1])
        else:
            yield from re.split(r"(?<=[.:!?])\s+(?=[A-Z])", " ".join(block))
            block = []


def without_subject(text, mark):
    return [s for s in sentences(text, mark) if re.match(r"(Of|What|Where|Those)\b", s) and not s.endswith("?")]


def test_sentences_begin_with_a_subject():
    """A sentence of a comment that begins with one of these words has to be read twice."""
    sources = tracked(*CPP, ".td", ".def", ".mlir", ".py")
    found = {n: some for n in sources if (some := without_subject((ROOT / n).read_text(), "#" if n.endswith(".py") else "//"))}
    assert not found


def test_a_sentence_without_a_subject_is_seen():
    text = "  // Rows are blocks. What\n  // is left is none.\nint x; // Where?\n// Where is it?\n/// Those: Of all, one.\n"
    assert without_subject(text, "//") == ["What is left is none.", "Those:", "Of all, one."]
    assert without_subject("# It is there.\n# What else\nx = 1\n", "#") == ["What else"]
