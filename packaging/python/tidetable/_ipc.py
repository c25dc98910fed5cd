"""Reads a stream of Arrow IPC messages, and hands it on through Arrow's C stream interface, without any library.

https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format is read, and
https://arrow.apache.org/docs/format/CStreamInterface.html is written. Buffers are not copied: they lie in the bodies of the messages,
which live until the consumer releases the arrays that point into them.

Where pyarrow or Polars is installed, they read the stream instead: a release is a call of Python here, and one that comes while an
exception is on its way loses that exception.
"""

from __future__ import annotations

import ctypes
import io
import itertools
import struct
from collections.abc import Callable
from typing import Any

SCHEMA, DICTIONARIES, ROWS = 1, 2, 3

# What begins a message, and how bodies are aligned in memory.
CONTINUATION = 0xFFFFFFFF
ALIGNMENT = 64

# Flags of a field of a schema.
DICTIONARY_ORDERED, NULLABLE, MAP_KEYS_SORTED = 1, 2, 4

# What a consumer is told when reading fails: input/output error.
EIO = 5

UNITS = "smun"
INTEGERS = {(8, True): "c", (8, False): "C", (16, True): "s", (16, False): "S", (32, True): "i", (32, False): "I", (64, True): "l", (64, False): "L"}


class StreamError(Exception):
    """The stream ended early, or holds what this reader does not know."""


class Table:
    """A table of a flatbuffer: fields by their number."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]
        self.size = struct.unpack_from("<H", data, self.fields)[0]

    def place(self, number: int) -> int:
        """Where a field is; 0 if it has its default."""
        offset = 4 + 2 * number
        found = struct.unpack_from("<H", self.data, self.fields + offset)[0] if offset < self.size else 0
        return self.at + found if found else 0

    def number(self, field: int, form: str, default: int = 0) -> int:
        place = self.place(field)
        return struct.unpack_from("<" + form, self.data, place)[0] if place else default

    def target(self, place: int) -> int:
        return place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, field: int) -> Table | None:
        place = self.place(field)
        return Table(self.data, self.target(place)) if place else None

    def vector(self, field: int) -> tuple[int, int]:
        """Where the elements begin, and how many there are."""
        place = self.place(field)
        if not place:
            return 0, 0
        start = self.target(place)
        return start + 4, struct.unpack_from("<I", self.data, start)[0]

    def tables(self, field: int) -> list[Table]:
        start, count = self.vector(field)
        return [Table(self.data, self.target(start + 4 * at)) for at in range(count)]

    def numbers(self, field: int, form: str) -> list[int]:
        start, count = self.vector(field)
        return list(struct.unpack_from(f"<{count}{form}", self.data, start)) if count else []

    def text(self, field: int) -> str | None:
        place = self.place(field)
        if not place:
            return None
        start, count = self.vector(field)
        return self.data[start : start + count].decode()


def root(data: bytes) -> Table:
    return Table(data, struct.unpack_from("<I", data, 0)[0])


def unit(kind: Table | None, default: int) -> str:
    return UNITS[kind.number(0, "h", default) if kind else default]


def form_of(kind: int, about: Table | None) -> tuple[str, int]:
    """The format of a type in the C data interface, and the number of buffers of an array of it; -1 for views."""

    def number(field: int, form: str, default: int = 0) -> int:
        return about.number(field, form, default) if about else default

    match kind:
        case 1:
            return "n", 0
        case 2:
            return INTEGERS[number(0, "i"), bool(number(1, "B"))], 2
        case 3:
            return "efg"[number(0, "h")], 2
        case 4 | 5 | 19 | 20:
            return {4: "z", 5: "u", 19: "Z", 20: "U"}[kind], 3
        case 6:
            return "b", 2
        case 7:
            bits = number(2, "i", 128)
            return f"d:{number(0, 'i')},{number(1, 'i')}" + (f",{bits}" if bits != 128 else ""), 2
        case 8:
            return ("tdD", "tdm")[number(0, "h", 1)], 2
        case 9:
            return f"tt{unit(about, 1)}", 2
        case 10:
            return f"ts{unit(about, 0)}:{(about and about.text(1)) or ''}", 2
        case 11:
            return ("tiM", "tiD", "tin")[number(0, "h")], 2
        case 12 | 21:
            return "+l" if kind == 12 else "+L", 2
        case 13:
            return "+s", 1
        case 15:
            return f"w:{number(0, 'i')}", 2
        case 16:
            return f"+w:{number(0, 'i')}", 1
        case 17:
            return "+m", 2
        case 18:
            return f"tD{unit(about, 1)}", 2
        case 23 | 24:
            return "vz" if kind == 23 else "vu", -1
    raise StreamError(f"a column has a type that is not read (number {kind} of Arrow's format): CAST it in the query")


class Field:
    """A column, or a part of one."""

    def __init__(self, about: Table) -> None:
        self.name = about.text(0) or ""
        self.flags = NULLABLE if about.number(1, "B") else 0
        kind, parts = about.number(2, "B"), about.table(3)
        self.format, self.buffers = form_of(kind, parts)
        if kind == 17 and parts and parts.number(0, "B"):
            self.flags |= MAP_KEYS_SORTED
        self.children = [Field(child) for child in about.tables(5)]

        self.values: Field | None = None
        self.dictionary = 0
        if encoding := about.table(4):
            self.values, self.dictionary = self.plain(), encoding.number(0, "q")
            index = encoding.table(1)
            self.format, self.buffers = form_of(2, index) if index else ("i", 2)
            self.children = []
            self.flags |= DICTIONARY_ORDERED if encoding.number(2, "B") else 0

    def plain(self) -> Field:
        """The field of the values of its dictionary."""
        values = Field.__new__(Field)
        values.__dict__.update(self.__dict__, name="", flags=NULLABLE, values=None, dictionary=0)
        return values

    def dictionaries(self) -> dict[int, Field]:
        """The values of all dictionaries in it, by number."""
        found = {self.dictionary: self.values} if self.values else {}
        for child in (self.values.children if self.values else self.children):
            found.update(child.dictionaries())
        return found


class ArrowSchema(ctypes.Structure):
    """`struct ArrowSchema`."""


class ArrowArray(ctypes.Structure):
    """`struct ArrowArray`."""


class ArrowStream(ctypes.Structure):
    """`struct ArrowArrayStream`."""


ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowStream))
GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowSchema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrowStream), ctypes.POINTER(ArrowArray))
# An address and not `c_char_p`, whose bytes would be freed when the callback returns.
GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrowStream))

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
ArrowStream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", GetLastError),
    ("release", ReleaseStream),
    ("private_data", ctypes.c_void_p),
]

# What C holds of Python, by the number in `private_data`: each struct keeps what it points to until it is released.
kept: dict[int, Any] = {}
numbers = itertools.count(1)


def keep(thing: Any) -> int:
    number = next(numbers)
    kept[number] = thing
    return number


def release(pointer: Any) -> None:
    """Releases a schema or an array: first what its owner did not take out of it, then itself."""
    held = pointer.contents
    parts = [held.children[at] for at in range(held.n_children)]
    if held.dictionary:
        parts.append(held.dictionary)
    for part in parts:
        if part.contents.release:
            part.contents.release(part)
    kept.pop(held.private_data, None)
    held.release = type(held.release)()


release_schema = ReleaseSchema(release)
release_array = ReleaseArray(release)


def pointers(kind: Any, parts: list[Any]) -> Any:
    return (ctypes.POINTER(kind) * len(parts))(*map(ctypes.pointer, parts)) if parts else None


def fill_schema(schema: Any, format: str, name: str, flags: int, children: list[Field], values: Field | None = None) -> None:
    parts = []
    for child in children:
        parts.append(ArrowSchema())
        fill_schema(parts[-1], child.format, child.name, child.flags, child.children, child.values)
    dictionary = None
    if values:
        dictionary = ArrowSchema()
        fill_schema(dictionary, values.format, "", values.flags, values.children)

    schema.format, schema.name, schema.metadata = format.encode(), name.encode(), None
    schema.flags, schema.n_children = flags, len(parts)
    of_children = pointers(ArrowSchema, parts)
    schema.children = of_children
    schema.dictionary = ctypes.pointer(dictionary) if dictionary is not None else None
    schema.release = release_schema
    schema.private_data = keep((schema.format, schema.name, parts, of_children, dictionary))


class Body:
    """The body of a message, aligned."""

    def __init__(self, size: int) -> None:
        self.memory = bytearray(size + ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.skipped = -start % ALIGNMENT
        self.address = start + self.skipped

    def view(self, size: int) -> memoryview:
        return memoryview(self.memory)[self.skipped : self.skipped + size]


class Batch:
    """Arrays of a message, in the order of its nodes and buffers."""

    def __init__(self, about: Table, body: Body, dictionaries: dict[int, tuple[Batch, Field]]) -> None:
        if about.table(3):
            raise StreamError("the stream is compressed, which is not read")
        self.length = about.number(0, "q")
        nodes, count = about.vector(1)
        self.nodes = [struct.unpack_from("<qq", about.data, nodes + 16 * at) for at in range(count)]
        buffers, count = about.vector(2)
        self.buffers = [struct.unpack_from("<qq", about.data, buffers + 16 * at) for at in range(count)]
        self.variadic = about.numbers(4, "q")
        self.body, self.dictionaries = body, dictionaries

    def rows(self, fields: list[Field], array: Any) -> None:
        """Fills an array of a struct, whose fields are the columns."""
        places = Places(self)
        parts = [places.array(field) for field in fields]
        fill_array(array, (self.length, 0), [0], parts, None, self.body)


class Places:
    """Goes through the nodes and buffers of a batch."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.nodes, self.buffers, self.variadic = iter(batch.nodes), iter(batch.buffers), iter(batch.variadic)

    def address(self) -> int:
        offset, _ = next(self.buffers)
        return self.batch.body.address + offset

    def array(self, field: Field) -> Any:
        node = next(self.nodes)
        buffers = []
        if field.buffers:
            # Without nulls there may be no bits of validity.
            bits = self.address()
            buffers.append(bits if node[1] else 0)
        sizes = None
        if field.buffers == -1:
            views, more = self.address(), next(self.variadic)
            places = [next(self.buffers) for _ in range(more)]
            sizes = (ctypes.c_int64 * max(more, 1))(*(size for _, size in places))
            buffers += [views, *(self.batch.body.address + offset for offset, _ in places), ctypes.addressof(sizes)]
        else:
            buffers += [self.address() for _ in range(field.buffers - 1)]

        parts = [self.array(child) for child in field.children]
        dictionary = None
        if field.values:
            values, of_values = self.batch.dictionaries[field.dictionary]
            dictionary = Places(values).array(of_values)
        array = ArrowArray()
        fill_array(array, node, buffers, parts, dictionary, (self.batch.body, sizes))
        return array


def fill_array(array: Any, node: tuple[int, int], buffers: list[int], parts: list[Any], dictionary: Any, held: Any) -> None:
    addresses = (ctypes.c_void_p * max(len(buffers), 1))(*(address or None for address in buffers))
    of_children = pointers(ArrowArray, parts)
    array.length, array.null_count, array.offset = node[0], node[1], 0
    array.n_buffers, array.n_children = len(buffers), len(parts)
    array.buffers, array.children = addresses, of_children
    array.dictionary = ctypes.pointer(dictionary) if dictionary is not None else None
    array.release = release_array
    array.private_data = keep((addresses, parts, of_children, dictionary, held))


class Reader:
    """The messages of a stream: first the schema, then batches of rows."""

    def __init__(self, stream: io.RawIOBase) -> None:
        self.stream = stream
        message = self.message()
        if message is None or message[0] != SCHEMA:
            raise StreamError("the stream has no schema")
        self.fields = [Field(field) for field in message[1].tables(1)]
        self.values: dict[int, Field] = {}
        for field in self.fields:
            self.values.update(field.dictionaries())
        self.dictionaries: dict[int, tuple[Batch, Field]] = {}

    def fill(self, view: memoryview) -> int:
        """Reads until the view is full, or the stream at its end. Returns the number of bytes."""
        filled = 0
        while filled < len(view) and (count := self.stream.readinto(view[filled:])):
            filled += count
        return filled

    def some(self, size: int) -> bytes:
        data = bytearray(size)
        return bytes(data[: self.fill(memoryview(data))])

    def exactly(self, view: memoryview) -> None:
        if self.fill(view) < len(view):
            raise StreamError("the stream ended within a message")

    def message(self) -> tuple[int, Table, Body] | None:
        """The kind of the next message, its header and its body; none at the end."""
        start = self.some(8)
        if not start:
            return None
        mark, size = struct.unpack("<II", start) if len(start) == 8 else (0, 0)
        if mark != CONTINUATION:
            raise StreamError("this is no Arrow stream")
        if size == 0:
            return None

        head = bytearray(size)
        self.exactly(memoryview(head))
        about = root(bytes(head))
        body_size = about.number(3, "q")
        body = Body(body_size)
        self.exactly(body.view(body_size))
        header = about.table(2)
        if header is None:
            raise StreamError("a message has no header")
        return about.number(1, "B"), header, body

    def batch(self) -> Batch | None:
        """The next batch of rows; none at the end."""
        while (message := self.message()) is not None:
            kind, header, body = message
            if kind == ROWS:
                return Batch(header, body, dict(self.dictionaries))
            if kind != DICTIONARIES or header.number(2, "B"):
                raise StreamError("the stream holds a message that is not read")
            data, number = header.table(1), header.number(0, "q")
            if data is not None:
                self.dictionaries[number] = (Batch(data, body, dict(self.dictionaries)), self.values[number])
        return None


class Stream:
    """A reader as a C stream; `end` is called once, at its end or when it is given up."""

    def __init__(self, reader: Reader, end: Callable[[], None]) -> None:
        self.reader, self.end = reader, end
        self.error: Any = None


def guarded(pointer: Any, work: Callable[[Stream], None]) -> int:
    """Does what a consumer asks for: 0, or the number of an error, whose text it asks for next."""
    stream = kept[pointer.contents.private_data]
    try:
        work(stream)
    except BaseException as error:
        stream.error = ctypes.create_string_buffer(str(error).encode() or type(error).__name__.encode())
        return EIO
    return 0


@GetSchema
def get_schema(pointer: Any, schema: Any) -> int:
    return guarded(pointer, lambda stream: fill_schema(schema.contents, "+s", "", 0, stream.reader.fields))


@GetNext
def get_next(pointer: Any, array: Any) -> int:
    def fill(stream: Stream) -> None:
        batch = stream.reader.batch()
        if batch is None:
            stream.end()
            array.contents.release = ReleaseArray()
        else:
            batch.rows(stream.reader.fields, array.contents)

    return guarded(pointer, fill)


@GetLastError
def get_last_error(pointer: Any) -> int | None:
    error = kept[pointer.contents.private_data].error
    return ctypes.addressof(error) if error is not None else None


@ReleaseStream
def release_stream(pointer: Any) -> None:
    held = pointer.contents
    stream = kept.pop(held.private_data, None)
    held.release = ReleaseStream()
    if stream is not None:
        try:
            stream.end()
        except Exception:
            # Nobody is there any more to be told.
            pass


Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, Destructor]
inside = ctypes.pythonapi.PyCapsule_GetPointer
inside.restype, inside.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]

STREAM_NAME, SCHEMA_NAME = b"arrow_array_stream", b"arrow_schema"


def dropped(name: bytes, kind: Any) -> Any:
    """What releases a struct that nobody took out of its capsule."""

    def drop(of_capsule: int) -> None:
        address = inside(of_capsule, name)
        held = ctypes.cast(address, ctypes.POINTER(kind))
        if held.contents.release:
            held.contents.release(held)
        kept.pop(address, None)

    return Destructor(drop)


drop_stream = dropped(STREAM_NAME, ArrowStream)
drop_schema = dropped(SCHEMA_NAME, ArrowSchema)


def in_capsule(struct_of_c: Any, name: bytes, destructor: Any) -> Any:
    # Addresses are never as small as the numbers of `keep`.
    address = ctypes.addressof(struct_of_c)
    kept[address] = struct_of_c
    return capsule(address, name, destructor)


def stream_capsule(reader: Reader, end: Callable[[], None]) -> Any:
    """The `PyCapsule` of `__arrow_c_stream__`. The consumer reads from `reader` as it goes."""
    stream = ArrowStream(get_schema, get_next, get_last_error, release_stream, keep(Stream(reader, end)))
    return in_capsule(stream, STREAM_NAME, drop_stream)


def schema_capsule(reader: Reader) -> Any:
    """The `PyCapsule` of `__arrow_c_schema__`."""
    schema = ArrowSchema()
    fill_schema(schema, "+s", "", 0, reader.fields)
    return in_capsule(schema, SCHEMA_NAME, drop_schema)
