"""Every error perfgate raises on purpose. Each message names the thing, what was expected, and the remedy.

PerfgateError
├── SettingsError            a wrong value in [tool.perfgate] or on the command line
├── DeviceBusy               another suite measures on this device
├── RepositoryError          git cannot give the commits that are to be compared
├── ComparisonError          nothing could be compared
├── ResultsError             a saved run cannot be used
│   ├── StrayLink            a folder of runs is a link that leads out of where it belongs
│   ├── UnreadableRun        the file is not a valid run
│   │   ├── MissingFile          there is no such file
│   │   ├── NotAFile             a link, a folder, a pipe or a device
│   │   ├── NoPermission         this user may not read it
│   │   ├── FileTooLarge         more bytes than the limit
│   │   ├── EmptyFile            nothing is in it
│   │   ├── NotText              another encoding than UTF-8, or no text at all
│   │   ├── LeftByGit            an unresolved merge, or a pointer of git-lfs
│   │   ├── NotJson              a syntax error
│   │   │   ├── RepeatedKey          one key twice in an object
│   │   │   ├── BadNumber            NaN, an infinity, or too many digits
│   │   │   └── NestedTooDeeply      more brackets than anybody needs
│   │   ├── NotARun              valid JSON of something else
│   │   ├── WrongField           missing, of another type, or out of its range
│   │   ├── NewerSchema          written by a newer perfgate
│   │   ├── UnknownSchema        older than any schema that this perfgate knows
│   │   ├── RepeatedBenchmark    two records of one name
│   │   └── Inconsistent         parts of the file contradict each other
│   └── UnsavableRun         the run could not be written; the old files are untouched
└── MeasurementError         a benchmark has no trustworthy number
    ├── WrongResult          the variant does not compute what its plain twin computes
    ├── NotInEffect          the technique under test does nothing
    ├── StateLeak            global state was changed and not put back
    ├── CannotCompile        torch.compile cannot take the model
    ├── DeviceLost           the GPU fell off the bus or needs a reset
    └── Recompiled           compiled code was compiled again inside the timed rounds
"""


class PerfgateError(Exception):
    """The root of the tree."""

    code = "error"
    """A short stable word for machines, used in verdicts and JSON."""


class SettingsError(PerfgateError):
    """A wrong value in ``[tool.perfgate]`` or on the command line."""

    code = "settings"


class DeviceBusy(PerfgateError):
    """Another suite measures on this device, or nobody can tell whether one does."""

    code = "device-busy"


class RepositoryError(PerfgateError):
    """Git cannot give the commits that are to be compared."""

    code = "repository"


class ComparisonError(PerfgateError):
    """Nothing could be compared."""

    code = "not-compared"


class ResultsError(PerfgateError):
    """A saved run cannot be used."""

    code = "results"


class StrayLink(ResultsError):
    """A folder of runs is a link that leads out of where it belongs."""

    code = "stray-link"


class UnreadableRun(ResultsError):
    """The file is not a valid run."""

    code = "unreadable"


class MissingFile(UnreadableRun):
    """There is no such file."""

    code = "missing-file"


class NotAFile(UnreadableRun):
    """A link, a folder, a pipe or a device is where a file belongs."""

    code = "not-a-file"


class NoPermission(UnreadableRun):
    """This user may not read the file or its folder."""

    code = "no-permission"


class FileTooLarge(UnreadableRun):
    """The file has more bytes than the limit."""

    code = "too-large"


class EmptyFile(UnreadableRun):
    """Nothing is in the file."""

    code = "empty"


class NotText(UnreadableRun):
    """The file is in another encoding than UTF-8, or no text at all."""

    code = "not-text"


class LeftByGit(UnreadableRun):
    """Git left something else in the file: an unresolved merge, or a pointer of git-lfs."""

    code = "left-by-git"


class NotJson(UnreadableRun):
    """The file has a syntax error."""

    code = "not-json"


class RepeatedKey(NotJson):
    """One key stands twice in an object."""

    code = "repeated-key"


class BadNumber(NotJson):
    """A number is NaN, an infinity, or has too many digits."""

    code = "bad-number"


class NestedTooDeeply(NotJson):
    """The file has more brackets in brackets than anybody needs."""

    code = "nested-too-deeply"


class NotARun(UnreadableRun):
    """The file is valid JSON of something else."""

    code = "not-a-run"


class WrongField(UnreadableRun):
    """A field is missing, of another type, or out of its range."""

    code = "wrong-field"


class NewerSchema(UnreadableRun):
    """The file was written by a newer perfgate."""

    code = "newer-schema"


class UnknownSchema(UnreadableRun):
    """The file's schema is older than any that this perfgate knows."""

    code = "unknown-schema"


class RepeatedBenchmark(UnreadableRun):
    """Two records of the file have one name."""

    code = "repeated-benchmark"


class Inconsistent(UnreadableRun):
    """Parts of the file contradict each other."""

    code = "inconsistent"


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


class DeviceLost(MeasurementError):
    """The GPU fell off the bus or needs a reset: nothing on it can be measured any more."""

    code = "device-lost"


class CannotCompile(MeasurementError):
    """torch.compile cannot take the model."""

    code = "cannot-compile"


class Recompiled(MeasurementError):
    """Compiled code was compiled again inside the timed rounds."""

    code = "recompiled"
