"""Taking turns: a measuring process that works only while its controller lets it.

Several processes are alive together and share a device, so exactly one of them may work. Each message of a process says
where it has got to and waits for the answer, which is its turn. The controller's end is ``perfgate.pairs``.

    at "collected"   with the ids found; answered with the ids to run, in order
    at "start"       of a benchmark: set up and warm up
    at "agree"       on the number of rounds; answered with it
    at "round"       before each round
    at "after"       the last round: count, check, tear down
    at "finish"      before the process ends
    "about", "record", "outcome", "modules"   tell, and do not wait
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

PROTOCOL = 1
"""Version of the messages; both ends must speak the same."""
BLOCK = 4
"""Rounds after which every combination has occurred once: which side goes first (A B B A), and whether the plain twin
goes before or after its variant. They are judged together."""
NOBODY_WAITS = 75
"""Exit status (``EX_TEMPFAIL``) of a process whose controller has gone."""


class Turns(Protocol):
    """What the measuring procedure asks for."""

    def agree(self, rounds: int) -> int:
        """The number of rounds to take; ``rounds`` is what this process would take."""

    def before_round(self) -> None:
        """Wait until the next round may begin."""

    def after_rounds(self) -> None:
        """Wait until work may go on after the last round."""


class Alone:
    """Nobody else measures: no waiting."""

    def agree(self, rounds: int) -> int:
        """As many as wished for."""
        return rounds

    def before_round(self) -> None:
        """At once."""

    def after_rounds(self) -> None:
        """At once."""


ALONE = Alone()


class Taken:
    """Turns given by a controller at the other end of ``descriptor``."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor``: of a connected socket, inherited from the controller."""
        self._connection = Connection(descriptor)
        self._name = ""

    def collected(self, ids: Sequence[str], problems: Mapping[str, str], machine: Mapping[str, Any]) -> list[str]:
        """Tell what was collected, what could not be, and on which machine; the ids to run, in order."""
        answer = self._wait(
            {"at": "collected", "protocol": PROTOCOL, "ids": list(ids), "problems": problems, "machine": machine}
        )
        return [str(each) for each in answer["ids"]]

    def start(self, name: str) -> None:
        """Wait until the benchmark ``name`` may begin."""
        self._name = name
        self._wait({"at": "start"})

    def agree(self, rounds: int) -> int:
        """What the controller decides."""
        return int(self._wait({"at": "agree", "rounds": rounds})["rounds"])

    def before_round(self) -> None:
        """Wait for the turn."""
        self._wait({"at": "round"})

    def after_rounds(self) -> None:
        """Wait for the turn."""
        self._wait({"at": "after"})

    def finish(self) -> None:
        """Wait until the process may end."""
        self._wait({"at": "finish"})

    def tell(self, kind: str, content: Mapping[str, Any]) -> None:
        """Send something that needs no answer."""
        self._send({"tell": kind, "content": content})

    def _wait(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self._send({**message, "id": self._name})
        try:
            answer: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(NOBODY_WAITS)  # no clean-up either: it would work on a device that may have been given away
        return answer

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._connection.send_bytes(json.dumps(message).encode())
        except OSError:
            os._exit(NOBODY_WAITS)
