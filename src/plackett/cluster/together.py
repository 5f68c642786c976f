"""Batching of questions of many threads to the same blocks, since a message takes longer than many a pass.

While one message is being answered, new questions wait for the next. Each question is answered separately, so that
answers do not depend on the batch.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

from plackett.cluster.held import Held, Question

PAUSE = 0.0005  # seconds that a message waits for the threads of the last one


class Together:
    """Send one question, with different arguments each time, to all blocks."""

    def __init__(self, held: Held, question: Question):
        self.held, self.question = held, question
        self._turn = threading.Condition()
        self._under_way, self._company = False, 1  # True during a message; number of threads in the last one
        self._waiting: list[tuple[tuple[Any, ...], Future[list[Any]]]] = []

    def ask(self, *arguments: object) -> list[Any]:
        """Return the results of question(block, *arguments), in the order of the blocks."""
        mine: Future[list[Any]] = Future()
        with self._turn:
            self._waiting.append((arguments, mine))
            self._turn.notify_all()
            self._turn.wait_for(lambda: mine.done() or not self._under_way)
            if mine.done():
                return mine.result()
            self._under_way = True
            self._turn.wait_for(lambda: len(self._waiting) >= self._company, PAUSE)
            asked, self._waiting = self._waiting, []
        try:
            found = self.held.each(answers, self.question, [arguments for arguments, _ in asked])
            for number, (_, future) in enumerate(asked):
                future.set_result([of_block[number] for of_block in found])
        except BaseException as error:
            for _, future in asked:
                future.set_exception(error)
        with self._turn:
            self._under_way, self._company = False, len(asked) + len(self._waiting)
            self._turn.notify_all()
        return mine.result()


def answers(block: object, question: Question, asked: list[tuple[Any, ...]]) -> list[Any]:
    """Return the answers of one block."""
    return [question(block, *arguments) for arguments in asked]
