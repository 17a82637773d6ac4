"""Everything at once: how much do the techniques that pay give together?"""

import pytest

from workloads.stacks import BEST

pytestmark = [pytest.mark.benchmark(group="everything"), pytest.mark.compile]

STACKS = [pytest.param(each, marks=pytest.mark.gpu if each.device_type == "cuda" else ()) for each in BEST]


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_best_stack(measure, stack):
    """The best stack that is known, against plain."""
    measure(stack.step(), against=stack.plain())
