"""Moves through a JSON file value by value in bounded memory, without parsing the values."""

import re
from typing import BinaryIO

STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
SKIP_TO_BRACE = re.compile(rb'[^"{}]*+(?:' + STRING + rb'[^"{}]*+)*+', re.DOTALL)
SKIP_TO_BRACKET = re.compile(rb'[^"\[\]]*+(?:' + STRING + rb'[^"\[\]]*+)*+', re.DOTALL)
"""Past complete strings and everything else up to the next bracket of one kind. Objects are cut by braces alone:
the brackets of coordinates are too many to look at, and the parser checks them anyway."""
WHOLE_STRING = re.compile(STRING, re.DOTALL)
SCALAR = re.compile(rb"[^\s,:\[\]{}\"]*+")
SPACE = re.compile(rb"[ \t\r\n]*+")

OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, QUOTE, COMMA, COLON = b'{}[]",:'
CHUNK_BYTES = 1 << 20


class FileEnds(Exception):
    """The file ends where something must follow."""


class ValueTooLarge(Exception):
    """A value is larger than the caller takes."""


class JsonCursor:
    """A place in a file that only moves forward. It holds one chunk, or one value where that is larger."""

    def __init__(self, file: BinaryIO, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._file = file
        self._chunk_bytes = chunk_bytes
        self._buffer = b""
        self._at = 0
        self._base = 0

    @property
    def offset(self) -> int:
        """The number of bytes before this place."""
        return self._base + self._at

    @property
    def end(self) -> int:
        """The number of bytes read so far: the size of the file once FileEnds was raised."""
        return self._base + len(self._buffer)

    def start(self, count: int) -> bytes:
        """The next bytes, or as many as there are, without moving."""
        while len(self._buffer) - self._at < count and self._more():
            pass
        return self._buffer[self._at : self._at + count]

    def peek(self) -> int | None:
        """The next byte that is not white space, now the next byte; None at the end of the file."""
        while True:
            space = SPACE.match(self._buffer, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return None

    def must_peek(self) -> int:
        """As `peek`; FileEnds at the end of the file."""
        byte = self.peek()
        if byte is None:
            raise FileEnds
        return byte

    def skip(self, count: int = 1) -> None:
        """Move past bytes that were seen by `peek` or `start`."""
        self._at += count

    def take(self, limit: int) -> bytes:
        """The text of the next value, which is now behind. It may still not be JSON; only its end was looked for.

        Raises FileEnds, and ValueTooLarge for more than `limit` bytes. Empty if no value starts here.
        """
        first = self.must_peek()
        if first in (OPEN_BRACE, OPEN_BRACKET):
            length = self._nested(SKIP_TO_BRACE if first == OPEN_BRACE else SKIP_TO_BRACKET, first, limit)
        elif first == QUOTE:
            length = self._string(limit)
        else:
            length = self._scalar(limit)
        if length > limit:
            raise ValueTooLarge
        text = self._buffer[self._at : self._at + length]
        self._at += length
        return text

    def _nested(self, skip: re.Pattern[bytes], opening: int, limit: int) -> int:
        depth = 0
        length = 0
        while True:
            rest = skip.match(self._buffer, self._at + length)
            length = rest.end() - self._at if rest else length
            if self._at + length == len(self._buffer) or self._buffer[self._at + length] == QUOTE:
                self._must_have_more(limit)
                continue
            depth += 1 if self._buffer[self._at + length] == opening else -1
            length += 1
            if depth == 0:
                return length

    def _string(self, limit: int) -> int:
        while True:
            whole = WHOLE_STRING.match(self._buffer, self._at)
            if whole:
                return whole.end() - self._at
            self._must_have_more(limit)

    def _scalar(self, limit: int) -> int:
        length = 0
        while True:
            run = SCALAR.match(self._buffer, self._at + length)
            length = run.end() - self._at if run else length
            if self._at + length < len(self._buffer):
                return length
            if length > limit:
                raise ValueTooLarge
            if not self._more():
                raise FileEnds

    def _must_have_more(self, limit: int) -> None:
        if len(self._buffer) - self._at > limit:
            raise ValueTooLarge
        if not self._more():
            raise FileEnds

    def _more(self) -> bool:
        """Read on; at least as much as is held, so that looking again at an unfinished value stays linear."""
        held = len(self._buffer) - self._at
        chunk = self._file.read(max(self._chunk_bytes, held))
        if not chunk:
            return False
        self._base += self._at
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        return True
