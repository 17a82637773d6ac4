"""Proof that each side ran its own code."""

from types import SimpleNamespace

import pytest

from perfgate.errors import ComparisonError
from perfgate.pairs.proof import check_exercised, subject_prover, suite_prover


@pytest.fixture
def roots(tmp_path):
    """A checkout per side with a package of its own."""
    made = {}
    for name in ("base", "head"):
        made[name] = tmp_path / name
        (made[name] / "pack").mkdir(parents=True)
        (made[name] / "pack" / "__init__.py").write_text(f"name = {name!r}\n", encoding="utf-8")
    return made


def heard(name, **fields):
    """What a process of that side told; ``modules`` by name."""
    modules = {module: str(file) for module, file in fields.pop("modules", {}).items()}
    return SimpleNamespace(
        **{
            "launch": SimpleNamespace(name=name),
            "records": {"t.py::a": None},
            "death": None,
            "modules": modules,
            "installed": {},
        }
        | fields
    )


@pytest.fixture
def prove(roots):
    """For packages under test."""
    return subject_prover({name: root / "pack" for name, root in roots.items()})


def own(roots, name):
    """The module that a side should have loaded."""
    return {"pack": roots[name] / "pack" / "__init__.py"}


def test_the_own_package_is_fine(prove, roots):
    """Whatever else was loaded, also of a name that begins alike."""
    prove(heard("base", modules=own(roots, "base") | {"packs.a": "/elsewhere/a.py", "x.pack": "/elsewhere/pack.py"}))


@pytest.mark.parametrize("module", ["pack", "pack.part"])
def test_the_other_sides_package_is_not(prove, roots, module):
    """Named with what was expected; one part of it is enough."""
    other = heard("base", modules=own(roots, "base") | {module: roots["head"] / "pack" / "__init__.py"})
    with pytest.raises(ComparisonError, match=r"base imported .*head/pack/__init__.py instead of .*base/pack"):
        prove(other)


def test_measuring_without_the_package_is_not(prove):
    """An installed copy is not told of."""
    with pytest.raises(ComparisonError, match=r"base measured without importing pack from .*base/pack"):
        prove(heard("base", modules={"thing": "/elsewhere/thing.py"}))


def test_another_content_in_the_right_folder_is_not(prove, roots):
    """Somebody edited the checkout meanwhile."""
    (roots["head"] / "pack" / "new.py").write_text("", encoding="utf-8")
    prove(heard("base", modules=own(roots, "base")))
    with pytest.raises(ComparisonError, match="changed while it was measured"):
        prove(heard("head", modules=own(roots, "head")))


@pytest.mark.parametrize("fields", [{"records": {}}, {"death": "crashed"}])
def test_where_nothing_was_told_nothing_is_proved(prove, roots, fields):
    """A process that measured nothing may have imported nothing; one that died could not tell."""
    prove(heard("base", **fields))
    prove(heard("base", modules=own(roots, "head"), **fields))


def test_a_link_to_the_package_is_the_package(tmp_path, roots):
    """As the folders are that processes import from."""
    (tmp_path / "link").symlink_to(roots["base"])
    prove = subject_prover({"base": tmp_path / "link" / "pack"})
    prove(heard("base", modules=own(roots, "base")))


@pytest.fixture
def prove_suite(roots, tmp_path):
    """For another project's suite."""
    (tmp_path / "project").mkdir()
    return suite_prover(roots, tmp_path / "project")


def test_own_modules_and_others_elsewhere_are_fine(prove_suite, roots):
    """Neither the other's checkout nor the project itself."""
    prove_suite(heard("base", modules=own(roots, "base") | {"else": "/somewhere/else.py"}))
    prove_suite(heard("head"))


def test_a_module_of_the_other_side_is_not(prove_suite, roots):
    """Named, with the remedies."""
    with pytest.raises(ComparisonError, match=r"base imported .*head/pack/__init__.py.*--prepare.*pythonpath"):
        prove_suite(heard("base", modules=own(roots, "head")))


def test_a_module_of_the_project_itself_is_not(prove_suite, tmp_path):
    """An editable install leads there."""
    with pytest.raises(ComparisonError, match="editable"):
        prove_suite(heard("head", modules={"x": tmp_path / "project" / "x.py"}))


def test_a_checkout_inside_the_project_is_no_foreign_code(roots, tmp_path):
    """TMPDIR may lie there."""
    prove = suite_prover(roots, tmp_path)
    prove(heard("base", modules=own(roots, "base")))


def test_a_folder_whose_name_only_begins_alike_is_another(prove_suite, roots, tmp_path):
    """``head-imports`` is not in ``head``."""
    prove_suite(heard("base", modules={"x": tmp_path / "head-imports" / "x.py"}))


def test_an_installed_copy_of_the_package_is_not_the_sides_own(roots):
    """Wherever pip put it."""
    prove = subject_prover({name: roots[name] / "pack" for name in roots})
    with pytest.raises(ComparisonError, match="instead of"):
        prove(heard("base", modules=own(roots, "base"), installed={"pack.extra": "/site-packages/pack/extra.py"}))


@pytest.mark.parametrize(
    ("changed", "module"),
    [
        ("pack/__init__.py", "pack"),
        ("pack/core.py", "pack.core"),
        ("src/pack/core.py", "pack.core"),
        ("src/single.py", "single"),
        ("single.py", "single"),
    ],
)
def test_a_changed_file_that_came_from_elsewhere_was_not_compared(roots, changed, module):
    """An installed copy, most often; named."""
    loaded = {module: f"/site-packages/{changed}"}
    with pytest.raises(ComparisonError, match=f"{module} changed, and was imported from /site-packages.*--prepare"):
        check_exercised([changed], roots, [{}, loaded])


@pytest.mark.parametrize("changed", [[], ["setup.cfg"], ["pack/other.py"], ["tests/conftest.py"], ["tools/x.py"]])
def test_what_was_not_changed_or_not_loaded_may_come_from_anywhere(roots, changed):
    """A suite need not use everything."""
    loaded = {"pack": "/site-packages/pack/__init__.py", "conftest": "/else/conftest.py", "x": "/site-packages/x.py"}
    check_exercised(changed, roots, [loaded, loaded])


def test_a_changed_file_of_the_own_checkout_was_compared(roots):
    """As it should be."""
    loaded = [{"pack": str(roots[name].resolve() / "pack" / "__init__.py")} for name in roots]
    check_exercised(["pack/__init__.py"], roots, loaded)
