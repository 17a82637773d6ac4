"""Every error perfgate raises on purpose. Each message names the thing, what was expected, and the remedy.

PerfgateError
├── SettingsError            a wrong value in [tool.perfgate] or on the command line
├── RepositoryError          git cannot give the commits that are to be compared
├── ComparisonError          nothing could be compared
├── ResultsError             a saved run cannot be used
│   ├── UnreadableRun        the file is not a valid run
│   └── UnsavableRun         the run could not be written; the old files are untouched
└── MeasurementError         a benchmark has no trustworthy number
    ├── WrongResult          the variant does not compute what its plain twin computes
    ├── NotInEffect          the technique under test does nothing
    ├── StateLeak            global state was changed and not put back
    └── Recompiled           compiled code was compiled again inside the timed rounds
"""


class PerfgateError(Exception):
    """The root of the tree."""

    code = "error"
    """A short stable word for machines, used in verdicts and JSON."""


class SettingsError(PerfgateError):
    """A wrong value in ``[tool.perfgate]`` or on the command line."""

    code = "settings"


class RepositoryError(PerfgateError):
    """Git cannot give the commits that are to be compared."""

    code = "repository"


class ComparisonError(PerfgateError):
    """Nothing could be compared."""

    code = "not-compared"


class ResultsError(PerfgateError):
    """A saved run cannot be used."""

    code = "results"


class UnreadableRun(ResultsError):
    """The file is not a valid run."""

    code = "unreadable"


class UnsavableRun(ResultsError):
    """The run could not be written; older files are untouched."""

    code = "unsavable"


class MeasurementError(PerfgateError):
    """A benchmark has no trustworthy number."""

    code = "measurement"


class WrongResult(MeasurementError):
    """The variant does not compute what its plain twin computes."""

    code = "wrong-result"


class NotInEffect(MeasurementError):
    """The technique under test does nothing."""

    code = "not-in-effect"


class StateLeak(MeasurementError):
    """Global state was changed and not put back."""

    code = "state-leak"


class Recompiled(MeasurementError):
    """Compiled code was compiled again inside the timed rounds."""

    code = "recompiled"
