"""Everything at once: how much do the techniques that pay give together?"""

import pytest

from workloads.stacks import BEST

pytestmark = [pytest.mark.benchmark(group="everything"), pytest.mark.compile]


def marks(stack):
    """A stack of one has been measured with its technique."""
    if stack.device_type == "cuda":
        return pytest.mark.gpu
    return pytest.mark.slow if len(stack.techniques) == 1 else ()


STACKS = [pytest.param(each, marks=marks(each)) for each in BEST]


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_best_stack(measure, stack):
    """The best stack that is known, against plain."""
    measure(stack.step(), against=stack.plain())
