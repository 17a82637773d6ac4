"""What differs, and whether any of it runs in what is measured."""

import pytest

from perfgate.pairs.change import Change


def change(*files, packages="src"):
    """A change of these files."""
    return Change(files=files, packages=packages, results="results")


@pytest.mark.parametrize("packages", ["src", ""])
@pytest.mark.parametrize("files", [(), ("README.md",), ("docs/a.png", "results/m/run.json", "LICENSE")])
def test_documents_are_idle(files, packages):
    """In either mode."""
    found = change(*files, packages=packages)
    assert found.is_idle
    assert not found.touches_benchmarks


@pytest.mark.parametrize("name", ["src/pack/a.py", "src/pack/table.txt", "src/other/b.py", "src/module.py"])
def test_packages_are_compared(name):
    """Each side has all of them of its own."""
    found = change(name, "README.md")
    assert found.compared == [name]
    assert not found.elsewhere
    assert not found.is_idle
    assert not list(found.notes("head"))


@pytest.mark.parametrize(
    "name", ["src/perfgate/gate.py", "benches/test_a.py", "benches/data.txt", "conftest.py", "pyproject.toml"]
)
def test_the_instrument_is_idle_and_noted(name):
    """The same one serves both sides."""
    found = change(name)
    assert found.is_idle
    assert found.touches_benchmarks == name.startswith("benches/")
    assert list(found.notes("main (4f0c)")) == [
        f"the change touches instrument or benchmarks ({name}): those of main (4f0c) measure both"
    ]


@pytest.mark.parametrize("name", ["tests/test_a.py", "tools/x.py", "tox.ini", "Makefile", ".ci/a.yml", ".gitignore"])
def test_what_serves_development_is_idle(name):
    """And not worth a word."""
    assert change(name).is_idle
    assert not list(change(name).notes("head"))


@pytest.mark.parametrize("name", ["requirements.txt", "../lib/x.py", "lib/x.py", "srcs/x.py", "setup.py"])
def test_what_could_matter_elsewhere_is_not_idle(name):
    """Both sides have the same of it, which is said."""
    found = change(name)
    assert not found.is_idle
    assert (found.compared, found.elsewhere) == ([], [name])
    assert list(found.notes("head")) == [f"changed, but the same on both sides of this comparison: {name}"]


def test_in_another_projects_suite_all_that_runs_is_compared():
    """Each side has everything of its own."""
    found = change("tests/test_a.py", "benches/a.py", "../lib/x.py", "pyproject.toml", "README.md", packages="")
    assert found.compared == ["tests/test_a.py", "benches/a.py", "../lib/x.py", "pyproject.toml"]
    assert not found.elsewhere
    assert not found.is_idle
    assert not found.touches_benchmarks
    assert not list(found.notes("head"))


@pytest.mark.parametrize("packages", ["src", ""])
def test_changed_results_are_noted(packages):
    """What is accepted may have been widened."""
    (note,) = change("results/accepted.toml", packages=packages).notes("head")
    assert note.startswith("the change touches results/")


def test_many_files_are_named_in_part():
    """A line stays a line."""
    (note,) = change(*(f"benches/test_{number}.py" for number in range(5))).notes("head")
    assert "benches/test_2.py and 2 more)" in note
