"""Cuts a GeoJSON FeatureCollection into features, in bounded memory, and says where a file breaks.

What is wrong inside a single feature is left to whoever parses it: one bad feature costs that feature only.
What makes the rest of the file unreadable is refused here, with the feature and the byte.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from geogenius.domain.errors import DataRefused
from geogenius.importer.geojson.cursor import (
    CHUNK_BYTES,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    FileEnds,
    JsonCursor,
    ValueTooLarge,
)
from geogenius.importer.text import shortened

FEATURE_BYTES = 24 << 20
"""Parsing takes about eight times the text: a larger feature is refused by name before a pod of 300 MiB is killed."""

MEMBER_BYTES = 4 << 20
UTF8_MARK = b"\xef\xbb\xbf"
FOREIGN_STARTS = (
    (b"\xff\xfe", "EncodingRefused", "is UTF-16 or UTF-32; save it as UTF-8"),
    (b"\xfe\xff", "EncodingRefused", "is UTF-16; save it as UTF-8"),
    (b"\x1f\x8b", "NotJson", "is compressed with gzip; unpack it first"),
    (b"PK\x03\x04", "NotJson", "is a zip archive; unpack it first"),
    (b"<", "NotJson", "is HTML or XML, perhaps the error page of a web server"),
    (b"\x1e", "NotAFeatureCollection", "is a GeoJSON text sequence; a FeatureCollection is needed"),
    (b"[", "NotAFeatureCollection", "is a JSON array; a FeatureCollection object is needed"),
)
LONGITUDE_LATITUDE = ("CRS84", "EPSG::4326", "EPSG:4326")


@dataclass(frozen=True, slots=True)
class RawFeature:
    """The text of one element of `features`: its number from 1, and its first byte in the file from 0."""

    position: int
    byte_offset: int
    text: bytes


class FeatureCollectionReader:
    """Reads one file, once. `name` is how messages call it.

    Raises DataRefused with reason NotJson, NotAFeatureCollection, Truncated, EncodingRefused, FeatureTooLarge
    or UnsupportedCrs; features before the broken place have been given by then.
    """

    def __init__(
        self, file: BinaryIO, name: str, *, chunk_bytes: int = CHUNK_BYTES, feature_bytes: int = FEATURE_BYTES
    ) -> None:
        self._cursor = JsonCursor(file, chunk_bytes)
        self._name = name
        self._feature_bytes = feature_bytes
        self._position = 0
        self._place = "before its first member"
        self._members: set[str] = set()

    @property
    def offset(self) -> int:
        """The number of bytes that are behind the reader."""
        return self._cursor.offset

    def __iter__(self) -> Iterator[RawFeature]:
        """The features in order. Ends normally only after the whole file was seen to be complete."""
        try:
            self._check_start()
            for member in self._member_names():
                if member == "features":
                    yield from self._features()
                else:
                    self._check_member(member)
            self._check_end()
        except FileEnds:
            raise self._refused("Truncated", f"ends at byte {self._cursor.end} {self._place}") from None
        except ValueTooLarge:
            raise self._refused("NotJson", f"has a value of more than {MEMBER_BYTES} bytes {self._place}") from None

    def _check_start(self) -> None:
        start = self._cursor.start(4)
        if start.startswith(UTF8_MARK):
            self._cursor.skip(len(UTF8_MARK))
        if not start or self._cursor.peek() is None:
            raise self._refused("NotJson", "is empty")
        head = self._cursor.start(4)
        for foreign, reason, advice in FOREIGN_STARTS:
            if head.startswith(foreign):
                raise self._refused(reason, advice)
        if b"\x00" in start:
            raise self._refused("EncodingRefused", "is UTF-16 or UTF-32, or binary; save it as UTF-8 text")
        if head[0] != OPEN_BRACE:
            raise self._refused("NotJson", f"is not JSON: it starts with {shortened(self._cursor.start(16))}")
        self._cursor.skip()

    def _member_names(self) -> Iterator[str]:
        """The keys of the collection; the caller reads the value of each before it asks for the next."""
        if self._cursor.peek() == CLOSE_BRACE:
            self._cursor.skip()
            return
        while True:
            if self._cursor.must_peek() != QUOTE:
                raise self._unexpected("the name of a member")
            name = self._text(self._cursor.take(MEMBER_BYTES))
            if name in self._members:
                raise self._refused("NotJson", f"has the member {shortened(name)} twice")
            self._members.add(name)
            self._place = f"inside the member {shortened(name)}"
            self._expect(COLON, "':'")
            yield name
            if self._end_of(CLOSE_BRACE, "',' or '}'"):
                return

    def _features(self) -> Iterator[RawFeature]:
        if self._cursor.must_peek() != OPEN_BRACKET:
            raise self._refused("NotAFeatureCollection", "has a member 'features' that is not an array")
        self._cursor.skip()
        if self._cursor.peek() == CLOSE_BRACKET:
            self._cursor.skip()
            return
        while True:
            yield self._feature()
            self._place = f"after feature {self._position}"
            if self._end_of(CLOSE_BRACKET, "',' or ']'"):
                return

    def _feature(self) -> RawFeature:
        self._cursor.must_peek()
        self._position += 1
        start = self.offset
        self._place = f"inside feature {self._position}, which starts at byte {start}"
        try:
            text = self._cursor.take(self._feature_bytes)
        except ValueTooLarge:
            limit = f"{self._feature_bytes} bytes"
            raise self._refused(
                "FeatureTooLarge", f"has a feature {self._position} at byte {start} of more than {limit}"
            ) from None
        if not text:
            self._place = f"where feature {self._position} should be"
            raise self._unexpected("a feature")
        return RawFeature(self._position, start, text)

    def _check_member(self, name: str) -> None:
        """Read a member that is not `features`; `type` and `crs` decide about the file."""
        text = self._cursor.take(MEMBER_BYTES)
        if not text:
            raise self._unexpected(f"the value of {shortened(name)}")
        value = self._parsed(text)
        if name == "type" and value != "FeatureCollection":
            raise self._refused(
                "NotAFeatureCollection", f"has the type {shortened(value)}; a FeatureCollection is needed"
            )
        if name == "crs" and not is_longitude_latitude(value):
            raise self._refused(
                "UnsupportedCrs",
                f"is in the coordinate system {shortened(value)}; convert it to longitude and latitude (EPSG:4326)",
            )

    def _check_end(self) -> None:
        for member in ("type", "features"):
            if member not in self._members:
                raise self._refused("NotAFeatureCollection", f"has no member '{member}'; a FeatureCollection is needed")
        if self._cursor.peek() is not None:
            raise self._refused(
                "NotJson",
                f"goes on after the end of the collection at byte {self.offset} "
                f"with {shortened(self._cursor.start(16))}",
            )

    def _end_of(self, closing: int, wanted: str) -> bool:
        """Move past a comma (False) or the closing bracket (True)."""
        byte = self._cursor.must_peek()
        if byte not in (COMMA, closing):
            raise self._unexpected(wanted)
        self._cursor.skip()
        return byte == closing

    def _expect(self, wanted: int, shown: str) -> None:
        if self._cursor.must_peek() != wanted:
            raise self._unexpected(shown)
        self._cursor.skip()

    def _text(self, raw: bytes) -> str:
        value = self._parsed(raw)
        if not isinstance(value, str):
            raise self._unexpected("the name of a member")
        return value

    def _parsed(self, raw: bytes) -> object:
        try:
            return json.loads(raw.decode())
        except UnicodeDecodeError as error:
            problem = f"is not UTF-8: a broken character {self._place}; save it as UTF-8"
            raise self._refused("EncodingRefused", problem) from error
        except (ValueError, RecursionError) as error:
            place = f"{self._place} that ends at byte {self.offset}"
            raise self._refused("NotJson", f"is not JSON {place}: {shortened(raw)}") from error

    def _unexpected(self, wanted: str) -> DataRefused:
        seen = shortened(self._cursor.start(16))
        return self._refused(
            "NotJson", f"is not JSON: at byte {self.offset} {self._place}, expected {wanted} and found {seen}"
        )

    def _refused(self, reason: str, problem: str) -> DataRefused:
        return DataRefused(f"{self._name} {problem}", reason=reason)


def is_longitude_latitude(crs: object) -> bool:
    """Whether the old `crs` member names what GeoJSON means without it."""
    match crs:
        case None:
            return True
        case {"type": "name", "properties": {"name": str(name)}}:
            return name.upper().endswith(LONGITUDE_LATITUDE)
        case _:
            return False
