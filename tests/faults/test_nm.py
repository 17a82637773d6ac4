"""Names from outside: in terminals, JUnit, JSON, folders and logs that a runner reads."""

import ast
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from perfgate.errors import PerfgateError, UnreadableRun
from perfgate.measure.environment import slug
from perfgate.report import text
from perfgate.report.comparison import Comparison
from perfgate.report.comparison import render as render_comparison
from perfgate.report.machine import as_json, as_junit
from perfgate.report.terminal import Report, render
from perfgate.results.baseline import Baseline
from perfgate.results.document import dumps, parse, to_document
from perfgate.results.record import MACHINE_NAME as FOLDER
from perfgate.results.store import Store, read
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.verdicts import Verdict
from tests.conftest import MACHINE, record, replaced, run, saved_runs, stock_of

SOURCE = Path(__file__).parent.parent.parent / "src"
LONG = "benches/test_a.py::test_a[" + "x" * 500 + "]"
COMMANDS = ["::set-env name=A::1", "::add-mask::x", "::stop-commands::t", "::error::x", "::warning file=a,line=1::x"]
COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
"""What GitHub's runner obeys: https://github.com/actions/runner, ActionCommand.cs."""
MARKUP = ["<script>alert(1)</script>", "</script>", "<img src=x onerror=alert(1)>", "&lt;&#60;"]
FORMATS = ["%s %(x)s %n", "{} {0} {x!r}", "{{7*7}}", "{% raw %}", "${x}", "$(x)"]
WIDTHS = [40, 80, 200]


def verdict(name, word="slower", reason="by 9 %"):
    """A verdict on a benchmark."""
    change = Estimate(1.09, 1.08, 1.1) if word == "slower" else None
    return Verdict(
        id=name,
        word=word,
        code=word,
        reason=reason,
        metric="wall_seconds",
        change=change,
        threshold=0.03,
        detectable=0.02,
    )


def session(name, columns=80, **fields):
    """The report of a session in which everything is called ``name``."""
    named = record(name, group=name, step=name, flags=(name,))
    commit = {"id": name, "branch": name, "dirty": "no"}
    machine = replaced(MACHINE, soft={"gpu": name})
    report = Report(
        run=run(named, machine=machine),
        baseline=Baseline(runs=(run(named, commit=commit),)),
        verdicts=[verdict(name, reason=fields.pop("reason", name))],
        compared=True,
        strict=False,
        smoke=False,
        saved=name,
        remarks=[name],
    )
    return render(report, columns=columns, colour=False)


def comparison(name, columns=80):
    """The report of a comparison in which everything is called ``name``."""
    told = Comparison(title=name, verdicts=[verdict(name, reason=name)], strict=False, notes=[name], advice=[name])
    return render_comparison(told, columns=columns, colour=False)


@pytest.mark.parametrize("name", MARKUP)
def test_nm_01_markup_of_pages_is_text_in_junit(name):
    """It comes back as it went in, and is no element."""
    written = as_junit([verdict(f"a.py::{name}", reason=name)], strict=False)
    (case,) = ET.fromstring(written).iter("testcase")
    assert case.get("name") == name
    assert name in case.find("failure").get("message")
    assert "<script" not in written
    assert "<img" not in written


@pytest.mark.parametrize("name", MARKUP)
def test_nm_02_the_same_as_commit_branch_or_machine(name):
    """A run keeps them as text; a folder is never called so."""
    made = run(commit={"id": "a" * 40, "branch": name, "dirty": "no"})
    assert parse(dumps(to_document(made, stock_of(made))).decode(), "x").commit["branch"] == name
    hard = {"gpu": name, "gpu_memory": "80 GiB", "gpu_count": "1", "cpu": name, "cores": "2", "architecture": "x86_64"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", slug(hard))


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("render_it", [session, comparison])
def test_nm_06_a_name_of_500_characters_is_cut(render_it, columns):
    """With an ellipsis, and no line is longer than the terminal."""
    shown = render_it(LONG, columns)
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns
    assert len(text.plain(LONG)) == 120
    assert text.plain(LONG).endswith("...")


@pytest.mark.parametrize("name", ["", " ", "\x00", "\u200b\u202e", "\n"])
def test_nm_06_an_empty_name_is_said(name):
    """As are names of which nothing is seen."""
    assert text.plain(name) == "(empty)"
    assert "(empty)" in session(name)


ACTING = {
    "right to left": "\u202e",
    "isolate": "\u2066",
    "Arabic mark": "\u061c",
    "zero width": "\u200b",
    "joiner": "\u2060",
    "BOM": "\ufeff",
    "soft hyphen": "\xad",
    "line separator": "\u2028",
    "tag": "\U000e0041",
    "lone surrogate": "\ud800",
    "no character": "\uffff",
}


@pytest.mark.parametrize("kind", ACTING)
def test_nm_07_characters_that_act_and_are_not_seen(kind):
    """Removed where something is shown; kept, in ASCII, where a run is saved."""
    name = f"benches/test_a.py::test_a[x{ACTING[kind]}y]"
    for shown in (session(name, 200), comparison(name, 200), as_junit([verdict(name)], strict=False)):
        assert ACTING[kind] not in shown
        assert "test_a[xy]" in shown
        shown.encode("utf-8")
    made = run(record(name))
    saved = dumps(to_document(made, stock_of(made)))
    assert saved.isascii()
    verdicts = as_json([verdict(name)], exit_code=1, about={})
    assert verdicts.isascii()
    assert json.loads(verdicts)["verdicts"][0]["id"] == name


def test_nm_08_one_name_in_two_normal_forms_is_one_benchmark():
    """A file that has both is refused, as is one that has the same twice."""
    made = run(record("a.py::test[\xe9]"), record("a.py::test[e\u0301]"))
    with pytest.raises(UnreadableRun):
        parse(dumps(to_document(made, stock_of(made))).decode(), "x")


TRAVERSALS = ["../../x", "/etc", "a/../b", "a\x00b", "", ".", "..", ".hidden", "a b", "a\n", "x" * 65, "a\\b", "ü"]


@pytest.mark.parametrize("name", TRAVERSALS)
def test_nm_09_a_machine_cannot_lead_out_of_the_folder(tmp_path, name):
    """Whether it comes from a file or from the hardware."""
    store = Store(tmp_path / "results")
    assert not FOLDER.fullmatch(name)
    with pytest.raises(PerfgateError):
        store.probe(name)
    with pytest.raises(PerfgateError):
        store.save(run(machine=replaced(MACHINE, slug=name)), stock_of(run()))
    assert not any(tmp_path.rglob("*.json"))
    assert re.fullmatch(r"[a-z0-9-]{1,64}", slug({"cpu": name, "cores": "2", "architecture": "x86_64"}))


HOSTILE_IDS = """
import pytest
from workloads import MLP

@pytest.mark.parametrize("name", ["../../outside", "a\\x00b", "\\x1b[2J", "::set-env name=A::1", "%s{}{{7*7}}", "[red]"])
def test_named(measure, name):
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())

def test_failing(measure):
    raise ValueError("first\\n::set-env name=A::1\\n\\x1b[2J ##[add-path]x \\x00")
"""


@pytest.fixture
def hostile(project):
    """A project whose benchmarks have hostile names."""
    (project.path / "benches" / "test_tiny.py").write_text(HOSTILE_IDS, encoding="utf-8")
    return project


def test_nm_10_14_15_17_18_a_whole_session_with_hostile_names(hostile):
    """No file outside, no escape, no command, a JUnit file that parses, and every benchmark saved."""
    result = hostile.runpytest(
        "benches", "--benchmark-compare", "--junitxml=junit.xml", "--perfgate-json=v.json", "--tb=no"
    )
    assert result.ret == 1
    assert not list(hostile.path.parent.glob("*outside*"))
    (saved,) = saved_runs(hostile)
    assert FOLDER.fullmatch(saved.parent.name)
    assert len(read(saved).records) == 6
    ours = result.stdout.str().partition("= perfgate =")[2].partition("= short test summary info =")[0]
    assert "first" in ours
    assert not COMMAND.search(ours)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", ours)
    cases = [case.get("name") for case in ET.parse(hostile.path / "junit.xml").getroot().iter("testcase")]
    assert sum("test_named" in case for case in cases) >= 6
    assert json.loads((hostile.path / "v.json").read_text(encoding="utf-8"))["exit_code"] == 1


def test_nm_11_a_link_is_not_read_as_a_run(tmp_path):
    """Nor are those of a folder that is a link listed as a machine's."""
    store = Store(tmp_path / "results")
    made = run()
    file = store.save(made, stock_of(made))
    link = tmp_path / "link.json"
    link.symlink_to(file)
    with pytest.raises(UnreadableRun, match="link"):
        read(link)
    (tmp_path / "results" / "other").symlink_to(file.parent)
    assert store.machines() == [made.machine.slug]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("render_it", [session, comparison])
@pytest.mark.parametrize("escape", ["\x1b]0;title\x07", "\x1b[2J", "\x9b2J", "\x08", "\r", "\x7f"])
def test_nm_14_terminal_escapes_are_not_printed(render_it, columns, escape):
    """What is left of them is text."""
    shown = render_it(f"a{escape}b", columns)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)


@pytest.mark.parametrize(
    "name", ["[red]x[/red]", "[/]", "[bold", "x\\", "[link=http://a]b[/link]", ":warning:", "[@click=x]y"]
)
@pytest.mark.parametrize("render_it", [session, comparison])
def test_nm_14_markup_of_the_terminal_is_text(render_it, name):
    """Neither colours nor pictures that look like our own."""
    assert name in render_it(name, 200)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("render_it", [session, comparison])
@pytest.mark.parametrize("command", [*COMMANDS, "##[add-path]/x", "##[error]x"])
def test_nm_15_no_line_is_a_command_to_a_runner(render_it, columns, command):
    """Neither at the beginning, nor after a line break, nor where a long line is wrapped."""
    for name in (
        command,
        f"a\n{command}",
        f"a\r{command}",
        f"benches/test_a.py{command}",
        f"{'x' * columns} {command}",
    ):
        assert not COMMAND.search(render_it(name, columns))
    written = as_json([verdict(command, reason=f"a\n{command}")], exit_code=1, about={"notes": [command]})
    assert not COMMAND.search(written)
    assert json.loads(written)["verdicts"][0]["id"] == command


def test_nm_15_the_case_of_a_regression_has_one_line():
    """pytest prints it as it is."""
    from perfgate.report.junit import failed_cases

    case, _ = failed_cases([verdict("a.py::test_a", reason="x\n::set-env name=A::1\n##[add-path]x")])
    assert not COMMAND.search(case.longrepr)
    assert "\n" not in case.longrepr


@pytest.mark.parametrize("code", [*range(0x20), 0x7F, 0xD800, 0xFFFE, 0xFFFF])
def test_nm_17_what_xml_cannot_hold_is_left_out_of_junit(code):
    """The file parses."""
    name = f"a.py::test_a[x{chr(code)}y]"
    (case,) = ET.fromstring(as_junit([verdict(name, reason=name)], strict=False)).iter("testcase")
    assert case.get("name") in ("test_a[xy]", "test_a[x y]")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("render_it", [session, comparison])
def test_nm_18_formats_in_names_are_text(render_it, name):
    """Nothing is filled in."""
    assert name in render_it(name, 200)
    assert f">{name}<" in ET.tostring(ET.fromstring(f"<a>{name}</a>"), encoding="unicode")


def test_nm_18_no_code_formats_with_data():
    """Neither ``.format`` nor ``%`` on text: what a name holds is never read as a format."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
            percent = (
                isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant)
            )
            assert not called, file
            assert not (percent and isinstance(node.left.value, str)), file
