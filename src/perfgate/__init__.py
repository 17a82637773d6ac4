"""The instrument: measures benchmarks so that their numbers can block a pull request, and judges them.

``perfgate.plugin`` is the pytest plugin. ``results``, ``verdict`` and ``report`` need neither torch nor pytest.
"""
