"""Your own model: which techniques of the catalogue apply to it, and which of them pay?

The workloads come from ``--perfgate-workload module:NAME`` and from installed packages (entry points of the group
``perfgate.workloads``); without any there is nothing here.
"""

import pytest

from workloads import Unsuitable, comparisons, own

pytestmark = pytest.mark.benchmark(group="own model")

try:
    EACH = comparisons(own.load())
except Unsuitable as error:
    raise pytest.Collector.CollectError(str(error)) from None

if EACH:

    @pytest.mark.parametrize("each", EACH, ids=str)
    def test_technique(measure, each):
        """One technique on one kind of step, against its twin."""
        measure(each.step, against=each.against)
