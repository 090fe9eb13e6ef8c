"""Notices a reply that goes round in circles.

Two kinds, both told apart from text that merely repeats itself: a short cycle of tokens, and
whole lines that come again and again in the same order.
"""

from __future__ import annotations

# A cycle must have come this often, and over this many tokens, before it counts: a table of equal
# cells or a ruler of dashes is shorter.
TOKEN_CYCLE_LENGTH = 32
TOKEN_CYCLE_REPEATS = 8
TOKEN_CYCLE_TOKENS = 160
LINE_CYCLE_LENGTH = 8
LINE_CYCLE_REPEATS = 6
LINE_CYCLE_CHARACTERS = 240


class RepetitionWatch:
    """Fed with tokens and their text; says when the end of them is a loop.

    The cost a token is constant: for each cycle length the watch keeps how long the end of the
    sequence has matched itself that far back.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, at the border between thinking and answer."""
        self._tokens: list[int] = []
        self._token_runs = [0] * (TOKEN_CYCLE_LENGTH + 1)
        self._lines: list[str] = []
        self._line_runs = [0] * (LINE_CYCLE_LENGTH + 1)
        self._line_start: list[str] = []

    def feed(self, token: int, text: str) -> bool:
        """Whether the reply is in a loop after this token."""
        looping = self._matches(self._tokens, self._token_runs, token)
        found = any(
            run >= TOKEN_CYCLE_TOKENS and run >= (TOKEN_CYCLE_REPEATS - 1) * period
            for period, run in looping
        )
        if "\n" not in text:
            self._line_start.append(text)
            return found
        head, *rest = text.split("\n")
        self._line_start.append(head)
        for line in ["".join(self._line_start), *rest[:-1]]:
            found = self._line(line.strip()) or found
        self._line_start = [rest[-1]]
        return found

    def _line(self, line: str) -> bool:
        if not line:
            return False
        for period, run in self._matches(self._lines, self._line_runs, line):
            length = sum(map(len, self._lines[-period:])) * (run + period) // period
            if run >= (LINE_CYCLE_REPEATS - 1) * period and length >= LINE_CYCLE_CHARACTERS:
                return True
        return False

    @staticmethod
    def _matches(seen: list, runs: list[int], item) -> list[tuple[int, int]]:
        """Append `item`; (period, length of the match with itself) where there is one."""
        longest = len(runs) - 1
        result = []
        for period in range(1, min(longest, len(seen)) + 1):
            if seen[-period] == item:
                runs[period] += 1
                result.append((period, runs[period]))
            else:
                runs[period] = 0
        seen.append(item)
        if len(seen) > 4 * longest:
            del seen[: -2 * longest]
        return result
