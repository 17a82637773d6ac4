"""Proof that each side ran its own code."""

from types import SimpleNamespace

import pytest

from perfgate.errors import ComparisonError
from perfgate.pairs.proof import subject_prover, suite_prover
from perfgate.repository import tree_hash


@pytest.fixture
def roots(tmp_path):
    """A checkout per side with a package of its own."""
    made = {}
    for name in ("base", "head"):
        made[name] = tmp_path / name
        (made[name] / "pack").mkdir(parents=True)
        (made[name] / "pack" / "__init__.py").write_text(f"name = {name!r}\n", encoding="utf-8")
    return made


def heard(name, *, imported="", tree="", modules=(), about=True):
    """What a process of that side told."""
    told = {"imported": str(imported), "process": {"subject": {"tree": tree} if tree else {}}} if about else {}
    return SimpleNamespace(launch=SimpleNamespace(name=name), about=told, modules=[str(each) for each in modules])


@pytest.fixture
def prove(roots):
    """For packages under test."""
    return subject_prover({name: root / "pack" for name, root in roots.items()})


def test_the_own_package_is_fine(prove, roots):
    """Its folder, and its content."""
    prove(heard("base", imported=roots["base"] / "pack", tree=tree_hash(roots["base"] / "pack")))


def test_the_other_sides_package_is_not(prove, roots):
    """Named with what was expected."""
    other = heard("base", imported=roots["head"] / "pack", tree=tree_hash(roots["head"] / "pack"))
    with pytest.raises(ComparisonError, match=r"base imported .*head/pack instead of .*base/pack"):
        prove(other)


def test_another_content_in_the_right_folder_is_not(prove, roots):
    """Somebody edited the checkout meanwhile."""
    with pytest.raises(ComparisonError, match="changed while it was measured"):
        prove(heard("head", imported=roots["head"] / "pack", tree="0" * 16))


def test_where_nothing_was_measured_nothing_is_proved(prove):
    """The plain fixture tells nothing of a subject, and a benchmark need not import it."""
    prove(heard("base", about=False))
    prove(heard("base", imported=""))


def test_a_link_to_the_package_is_the_package(tmp_path, roots):
    """As the folders are that processes import from."""
    (tmp_path / "link").symlink_to(roots["base"] / "pack")
    prove = subject_prover({"base": tmp_path / "link"})
    prove(heard("base", imported=roots["base"] / "pack", tree=tree_hash(roots["base"] / "pack")))


@pytest.fixture
def prove_suite(roots, tmp_path):
    """For another project's suite."""
    (tmp_path / "project").mkdir()
    return suite_prover(roots, tmp_path / "project")


def test_own_modules_and_others_elsewhere_are_fine(prove_suite, roots):
    """Neither the other's checkout nor the project itself."""
    prove_suite(heard("base", modules=[roots["base"] / "pack" / "__init__.py", "/somewhere/else.py"]))
    prove_suite(heard("head"))


def test_a_module_of_the_other_side_is_not(prove_suite, roots):
    """Named, with the remedies."""
    with pytest.raises(ComparisonError, match=r"base imported .*head/pack/__init__.py.*--prepare.*pythonpath"):
        prove_suite(heard("base", modules=[roots["head"] / "pack" / "__init__.py"]))


def test_a_module_of_the_project_itself_is_not(prove_suite, tmp_path):
    """An editable install leads there."""
    with pytest.raises(ComparisonError, match="editable"):
        prove_suite(heard("head", modules=[tmp_path / "project" / "x.py"]))


def test_a_checkout_inside_the_project_is_no_foreign_code(roots, tmp_path):
    """TMPDIR may lie there."""
    prove = suite_prover(roots, tmp_path)
    prove(heard("base", modules=[roots["base"] / "pack" / "__init__.py"]))


def test_a_folder_whose_name_only_begins_alike_is_another(prove_suite, roots, tmp_path):
    """``head-imports`` is not in ``head``."""
    prove_suite(heard("base", modules=[tmp_path / "head-imports" / "x.py"]))
