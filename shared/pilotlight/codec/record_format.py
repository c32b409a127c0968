"""Format in which a value of the state is written and read: one JSON object, with the schema it was written under.

::

    {"schema": 1, "fence": 7}

A field that is added with a default needs no new schema: older code refuses the record for its unknown field, rather
than dropping the field when it writes. A field that is renamed, removed or means something else needs a new one.
"""

from typing import Generic, TypeVar

import msgspec

from pilotlight.errors import Corrupt

T = TypeVar("T", bound=msgspec.Struct)

MOST_KEPT = 1024
"""Of so many records of a kind what they hold is kept, in a process that lives on."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A record whose being there is what it says. ``note`` is for people who look."""

    note: str = ""


class Format(Generic[T]):
    """The way one kind of record is written. A record of another schema is refused, and left as it is."""

    def __init__(self, kind: type[T], schema: int = 1) -> None:
        self.kind = kind
        self.schema = schema
        self._decoder = msgspec.json.Decoder(kind)
        self._head = b'{"schema":%d' % schema
        self._known = {*kind.__struct_encode_fields__, "schema"}
        self._last: dict[str, tuple[bytes, T]] = {}
        self._written: tuple[T, bytes] | None = None

    def write(self, value: T, key: str = "") -> bytes:
        """The record of a value. One of which the size was looked at is not encoded again.

        Where a record of ``key`` was read before, its next reader has the value at hand.
        """
        written = self._written
        if written is not None and written[0] is value:
            record = written[1]
        else:
            fields = msgspec.json.encode(value)
            record = self._head + (fields[1:] if fields == b"{}" else b"," + fields[1:])
            self._written = value, record
        if key in self._last:
            self._last[key] = record, value
        return record

    def read(self, key: str, record: bytes) -> T:
        """The value of a record. Raises ``Corrupt``, which names the key.

        A record that reads as it did the last time is not decoded again: values are frozen, most records of a look old.
        """
        last = self._last.get(key)
        if last is not None and last[0] == record:
            return last[1]
        value = self._decoded(key, record)
        if len(self._last) >= MOST_KEPT:
            self._last.clear()
        self._last[key] = record, value
        return value

    def _decoded(self, key: str, record: bytes) -> T:
        try:
            fields = _fields.decode(record)
            schema = bytes(fields.get("schema", b"")).decode()
            if schema != str(self.schema):
                raise Corrupt(
                    f"state {key}: written under {f'schema {schema}' if schema else 'no schema'}, and this Pilotlight "
                    f"reads schema {self.schema}: use the version that wrote it; the record is left as it is"
                )
            if unknown := sorted(fields.keys() - self._known):
                raise _unreadable(key, f"has the field {unknown[0]!r}, which no {self.kind.__name__.strip('_')} has")
            return self._decoder.decode(record)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(key, str(error)) from None


def _unreadable(key: str, why: str) -> Corrupt:
    return Corrupt(
        f"state {key}: cannot be read: {why}; it is left as it is: look with `pilotlight state get {key}`, "
        "mend it with `pilotlight state import --replace`"
    )


MARK = Format(Mark, 2)
