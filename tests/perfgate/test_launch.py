"""The environment of measuring processes."""

import subprocess
import sys

from perfgate import cli, launch


def test_quiet_environment_adds_what_is_missing():
    """Huge pages, passive waiting, and one core left free."""
    quiet = launch.quiet_environment({"HOME": "/home/x"})
    assert quiet["GLIBC_TUNABLES"] == launch.HUGE_PAGES
    assert quiet["OMP_WAIT_POLICY"] == "passive"
    assert quiet["OMP_NUM_THREADS"] == str(max(1, launch.effective_cores() - 1))
    assert quiet["HOME"] == "/home/x"


def test_what_the_user_set_stays():
    """Other tunables are kept beside ours."""
    mine = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "OMP_NUM_THREADS": "7", "OMP_WAIT_POLICY": "active"}
    quiet = launch.quiet_environment(mine)
    assert quiet["GLIBC_TUNABLES"] == f"glibc.malloc.arena_max=1:{launch.HUGE_PAGES}"
    assert quiet["OMP_NUM_THREADS"] == "7"
    assert quiet["OMP_WAIT_POLICY"] == "active"
    off = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}
    assert launch.quiet_environment(off)["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=0"


def test_exec_runs_the_command_in_that_environment(monkeypatch):
    """And hands its exit code on."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    code = "import os, sys; sys.exit(7 if os.environ['OMP_WAIT_POLICY'] == 'passive' else 1)"
    done = subprocess.run([sys.executable, "-m", "perfgate", "exec", sys.executable, "-c", code], check=False)
    assert done.returncode == 7


def test_exec_names_a_program_that_is_not_there(capsys):
    """Exit 2, without a traceback."""
    assert cli.main(["exec", "no-such-program-here"]) == 2
    assert "cannot run no-such-program-here" in capsys.readouterr().err
