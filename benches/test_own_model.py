"""Your own model: which techniques of the catalogue apply to it, and which of them pay?

The workloads come from ``--perfgate-workload module:NAME`` and from installed packages (entry points of the group
``perfgate.workloads``); without any there is nothing here.
"""

import pytest

from workloads import comparisons, own

pytestmark = pytest.mark.benchmark(group="own model")

EACH = comparisons(own.load())

if EACH:

    @pytest.mark.parametrize("each", EACH, ids=str)
    def test_technique(measure, each):
        """One technique on one kind of step, against its twin."""
        measure(each.step, against=each.against)
