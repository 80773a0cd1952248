"""Rules of style that no linter has. Each message says what to do instead."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.tidy

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 50
CODE_SUFFIXES = frozenset({".py", ".sql", ".proto", ".sh", ".toml", ".yaml", ".yml"})

# Spelled so that this file does not match itself.
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIXM[E]|X[X]X|HAC[K])\b")
REGISTRY_HOSTS = tuple(
    f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs", "anaconda")
)
# A folder that many machines have says nothing about this one.
COMMON_FOLDERS = frozenset(
    {"/", "/app", "/builds", "/home", "/mnt", "/opt", "/srv", "/tmp", "/usr", "/var"}  # noqa: S108 - names, no file is made there
)

# How a test may assert without the word: these fail by themselves.
ASSERTING_CALL = re.compile(r"^_?(assert|expect|check|verify|wait_|eventually)")
ASSERTING_NAMES = frozenset({"raises", "warns", "fail", "run_state_machine_as_test"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def repository_files() -> list[Path]:
    """What git has or would take: a new file is judged before it lands."""
    # safe.directory: CI reads a clone that belongs to someone else
    command = ("git", "-c", "safe.directory=*", "ls-files", "-z")
    listing = subprocess.run(
        [*command, "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = (ROOT / name for name in listing.split("\0") if name)
    return sorted({path for path in paths if path.is_file() and not path.is_symlink()})


FILES = repository_files()
PYTHON = [path for path in FILES if path.suffix == ".py"]
TESTS = [path for path in PYTHON if path.is_relative_to(ROOT / "tests")]
TEST_FILES = [path for path in TESTS if path.name.startswith("test_")]
HOOK = [path for path in PYTHON if path.is_relative_to(ROOT / "libs/hook/src")]
RUNTIME = ROOT / "libs/runtime"
SERVICES = sorted(path.parent for path in ROOT.glob("services/*/pyproject.toml"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def text_of(path: Path) -> str:
    """Read a text file; a binary one has nothing to say here."""
    content = path.read_bytes()
    return "" if b"\0" in content else content.decode(errors="replace")


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def last_name(node: ast.expr) -> str:
    """`a.b.c` and `c` are both called `c`."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=function):
            return last_name(function)
        case _:
            return ""


def lines_of(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_fits_on_a_screen(path: Path):
    lines = path.read_text().count("\n")
    long = [
        f.name for f in functions(tree_of(path)) if lines_of(f) > FUNCTION_LINES_MAX
    ]
    assert lines <= FILE_LINES_MAX, f"{lines} lines: split by reason to change"
    assert not long, (
        f"{long}: more than {FUNCTION_LINES_MAX} lines, pull pure steps out"
    )


def test_no_init_at_the_namespace_root():
    strays = [name_of(path) for path in ROOT.glob("*/*/src/trainmaster/__init__.py")]
    assert not strays, "trainmaster is a namespace: delete these, or the others vanish"


# ------------------------------------------------------------------------- errors


def is_broad(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(is_broad(part) for part in kind.elts)
    return kind is None or last_name(kind) in {"Exception", "BaseException"}


def broad_catches(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(type=kind, lineno=line) if is_broad(kind):
                yield line
            case ast.Call(args=kinds, lineno=line) if last_name(node) == "suppress":
                yield from (line for kind in kinds if is_broad(kind))
            case _:
                pass


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_only_the_runtime_catches_everything(path: Path):
    lines = [] if path.is_relative_to(RUNTIME) else list(broad_catches(tree_of(path)))
    assert not lines, f"lines {lines}: name the error you can do something about"


def test_the_hook_needs_nothing_but_the_standard_library():
    imported = {
        f"{name_of(path)}: {root}"
        for path in HOOK
        for node in ast.walk(tree_of(path))
        for root in imported_roots(node)
        if root not in sys.stdlib_module_names
    }
    assert not imported, (
        f"{imported}: the hook is imported by training code: standard library only"
    )


def imported_roots(node: ast.AST) -> list[str]:
    """First names of what a statement imports; the hook's own modules aside."""
    match node:
        case ast.Import(names=aliases):
            names = [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module), level=0):
            names = [module]
        case _:
            names = []
    ours = "trainmaster.hook"
    return [
        n.split(".")[0] for n in names if n != ours and not n.startswith(ours + ".")
    ]


# -------------------------------------------------------------------------- tests


def is_sleep(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="sleep")):
            return last_name(owner) in {"asyncio", "time", "trio", "anyio"}
        case ast.ImportFrom(module="asyncio" | "time", names=aliases):
            return any(alias.name == "sleep" for alias in aliases)
        case _:
            return False


@pytest.mark.parametrize(
    "path",
    [p for p in TESTS if p in TEST_FILES or p.name == "conftest.py"],
    ids=name_of,
)
def test_tests_never_sleep(path: Path):
    lines = [
        getattr(node, "lineno", 0) for node in ast.walk(tree_of(path)) if is_sleep(node)
    ]
    assert not lines, f"lines {lines}: wait for a signal or a condition with a deadline"


def called_names(function: Function) -> set[str]:
    return {last_name(n) for n in ast.walk(function) if isinstance(n, ast.Call)}


def asserts_itself(function: Function) -> bool:
    names = called_names(function)
    return (
        any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or bool(names & ASSERTING_NAMES)
        or any(ASSERTING_CALL.match(name) for name in names)
    )


def silent_tests(tree: ast.Module) -> list[str]:
    """Tests that fail only by accident; calling an asserting neighbour is enough."""
    known = list(functions(tree))
    asserting = {function.name for function in known if asserts_itself(function)}
    return [
        f"{function.lineno} {function.name}"
        for function in known
        if function.name.startswith("test_")
        and function.name not in asserting
        and not called_names(function) & asserting
    ]


@pytest.mark.parametrize("path", TEST_FILES, ids=name_of)
def test_every_test_can_fail(path: Path):
    silent = silent_tests(tree_of(path))
    assert not silent, f"{silent}: say what must be true"


# --------------------------------------------------------------------- repository


def this_machine() -> list[str]:
    """Paths that would mean nothing on another machine."""
    own = {str(ROOT), str(ROOT.parent), str(Path.home())} - COMMON_FOLDERS
    return [f"{path}/" for path in sorted(own)]


def naming(needles: tuple[str, ...]) -> list[str]:
    return [
        f"{name_of(path)}: {needle}"
        for path in FILES
        for text in (text_of(path),)
        for needle in needles
        if needle in text
    ]


def test_no_file_names_a_folder_of_this_machine():
    found = naming(tuple(this_machine()))
    assert not found, f"{found}: use a path relative to the repository or a setting"


def test_no_file_names_a_package_registry():
    found = naming(REGISTRY_HOSTS)
    assert not found, (
        f"{found}: the machine's own configuration says where packages come from"
    )


def is_written(path: Path) -> bool:
    written = path.name in {"Makefile", "Dockerfile", "run"} or path.suffix == ".md"
    return written or path.suffix in CODE_SUFFIXES


def test_nothing_is_marked_unfinished():
    found = [
        f"{name_of(path)}:{number}"
        for path in FILES
        if is_written(path)
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    assert not found, f"{found}: finish it, or file an issue and delete the mark"


def test_every_make_target_has_a_help_line():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][\w%-]*):(?!=)(.*)$", makefile, re.MULTILINE)
    silent = [name for name, rest in targets if not re.search(r" ## \S", rest)]
    assert targets, "the Makefile has no targets that this test can read"
    assert not silent, f"{silent}: add `## what it does` so that make help shows it"


@pytest.mark.parametrize("target", ["make demo", "make test"])
def test_the_readme_names_the_first_commands(target: str):
    readme = ROOT / "README.md"
    assert readme.is_file(), "write README.md"
    assert target in readme.read_text(), f"README.md does not say `{target}`"


@pytest.mark.parametrize("service", SERVICES, ids=name_of)
def test_every_service_says_what_it_hears_says_owns_and_never_does(service: Path):
    readme = service / "README.md"
    assert readme.is_file(), f"write {name_of(readme)}: one screen"
    words = set(re.findall(r"\w+", readme.read_text().lower()))
    missing = {"hears", "says", "owns", "never"} - words
    assert not missing, f"{name_of(readme)} does not say {sorted(missing)}"
