"""Reads one CSV as docs/guide/inputs.md says, slowly and plainly, to compare with.

It shares no code with the readers of the repository. `read` gives typed records and rejects with their lines; `load` follows a file that
grows from one run to the next.
"""

import dataclasses
import datetime
import decimal
import re
import zoneinfo

BOM = b"\xef\xbb\xbf"

# A stray quote: one that nothing closes, or one with text behind the quote that closes it, some lines below.
OPEN, CLOSED = "open", "closed"

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

# Blanks that are trimmed from numbers and times: those of ASCII and Unicode, and zero-width ones.
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\ufeff"


@dataclasses.dataclass(frozen=True)
class Column:
    """A declared column: `kind` is text, bool, int64, uint64, float64, decimal, date or timestamp.

    `digits` is (precision, scale) of a decimal, `format` the strftime of a time, or `s` or `ms` for epoch numbers, and `timezone` is the zone of
    times without an offset.
    """

    name: str
    kind: str
    digits: tuple = (9, 2)
    decimal: str | None = None
    thousands: str | None = None
    format: str | None = None
    timezone: str | None = None


@dataclasses.dataclass(frozen=True)
class Dialect:
    """How a file is written. All single characters are one byte."""

    delimiter: bytes = b","
    quote: bytes | None = b'"'
    escape: bytes | None = None
    comment: bytes | None = None
    decimal: str = "."
    header: bool = True
    skip: int = 0
    null: tuple = ("",)


@dataclasses.dataclass(frozen=True)
class Reject:
    """A record that does not fit: its first line and all causes that a reader may name."""

    line: int
    causes: frozenset
    raw: bytes = b""


@dataclasses.dataclass
class Reading:
    """What a file holds: records as (line, values by column, in the order of the columns), rejects, lines equal to the header."""

    records: list = dataclasses.field(default_factory=list)
    rejects: list = dataclasses.field(default_factory=list)
    headers: int = 0
    # The line of the first record with a quote that the end of the file leaves open.
    open_line: int | None = None


class Unfit(Exception):
    """A text is no value of its column."""


def newline_of(content):
    """The byte that ends lines: CR if there is no LF, else LF. None if there is neither, so that nothing is decided."""
    if b"\n" in content:
        return b"\n"
    return b"\r" if b"\r" in content else None


class Text:
    """The bytes of a file, cut into lines and fields."""

    def __init__(self, content, dialect, newline, breaks):
        self.content = content
        self.dialect = dialect
        self.newline = newline or b"\n"
        self.breaks = sorted(breaks)

    def end_of_line(self, start, limit):
        found = self.content.find(self.newline, start, limit)
        return limit if found < 0 else found

    def after_line(self, start, limit):
        """Where the line that holds `start` ends, its end included. An LF behind the CR of a file with CRs alone belongs to that end."""
        end = min(self.end_of_line(start, limit) + 1, limit)
        return end + 1 if self.newline == b"\r" and self.content[end - 1 : end + 1] == b"\r\n" and end < limit else end

    def bare_line(self, start, limit):
        """A line without its end and the CRs before it."""
        return self.content[start : self.end_of_line(start, limit)].rstrip(b"\r")

    def limit(self, start):
        """Where a record that begins at `start` must end."""
        return next((b for b in self.breaks if b > start), len(self.content))

    def quoted(self, start, limit):
        """A quoted value that begins at `start`: its text and the place behind its closing quote, or None if it is never closed."""
        quote, escape, content = self.dialect.quote, self.dialect.escape, self.content
        value, place = bytearray(), start + 1
        while place < limit:
            byte = content[place : place + 1]
            following = content[place + 1 : place + 2] if place + 1 < limit else b""
            if escape is not None and byte == escape and following in (quote, escape) and following:
                value += following
                place += 2
            elif byte == quote and following == quote:
                value += quote
                place += 2
            elif byte == quote:
                return bytes(value), place + 1
            else:
                value += byte
                place += 1
        return None

    def record(self, start, limit):
        """The fields of a record as (value, quoted), and where the next begins.

        A stray quote gives OPEN or CLOSED instead of the fields, and the end of its line.
        """
        delimiter, quote, content = self.dialect.delimiter, self.dialect.quote, self.content
        fields, place = [], start
        while True:
            value, is_quoted, spans, opened = b"", False, False, place
            if quote and place < limit and content[place : place + 1] == quote:
                found = self.quoted(place, limit)
                if found is None:
                    return OPEN, self.after_line(opened, limit)
                value, behind = found
                spans = self.newline in content[place:behind]
                is_quoted, place = True, behind

            line_end = self.end_of_line(place, limit)
            next_delimiter = content.find(delimiter, place, line_end)
            end = line_end if next_delimiter < 0 else next_delimiter
            rest = content[place:end]
            if next_delimiter < 0:
                rest = rest.rstrip(b"\r")
            if spans and rest:
                return CLOSED, self.after_line(opened, limit)

            fields.append((value + rest, is_quoted))
            if next_delimiter < 0:
                return fields, self.after_line(line_end, limit)
            place = next_delimiter + 1


def read(content, dialect, columns, newline=None, breaks=()):
    """Reads a whole file. `newline` is what ends its lines if that was decided before; `breaks` are places that no record crosses."""
    text = Text(content, dialect, newline or newline_of(content), breaks)
    reading, place, line = Reading(), len(BOM) if content.startswith(BOM) else 0, 1

    for _ in range(dialect.skip):
        place = text.after_line(place, len(content))
        line += 1

    header, names, extra = None, [column.name for column in columns], 0
    while place < len(content):
        limit = text.limit(place)
        bare = text.bare_line(place, limit)
        if not bare or (dialect.comment and bare.startswith(dialect.comment)):
            place = text.after_line(place, limit)
            line += 1
            continue
        if dialect.header and header is None:
            fields, end = text.record(place, limit)
            header = content[place:end].rstrip(b"\r\n")
            names = [value.decode() for value, _ in fields]
            extra = extra_fields(text, content, dialect, end, len(names))
        elif dialect.header and bare.removeprefix(BOM) == header:
            reading.headers += 1
            end = text.after_line(place, limit)
        else:
            fields, end = text.record(place, limit)
            raw = content[place:end]
            if fields in (OPEN, CLOSED):
                if fields == OPEN and limit == len(content) and reading.open_line is None:
                    reading.open_line = line
                reading.rejects.append(Reject(line, frozenset(["quote"]), raw))
            else:
                behind = fields[len(names):]
                if 0 < len(behind) <= extra and all(not value.strip(b" \t\n\x0c\r") for value, _ in behind):
                    fields = fields[:len(names)]
                accept(fields, raw, line, names, dialect, columns, reading)
        line += content.count(text.newline, place, end)
        place = end
    return reading


def extra_fields(text, content, dialect, place, width):
    """How many more fields than the header most of the first 64 records have, of equally common widths the least."""
    widths = []
    while place < len(content) and len(widths) < 64:
        limit = text.limit(place)
        bare = text.bare_line(place, limit)
        if not bare or (dialect.comment and bare.startswith(dialect.comment)):
            place = text.after_line(place, limit)
            continue
        fields, place = text.record(place, limit)
        if fields not in (OPEN, CLOSED):
            widths.append(len(fields))
    usual = max(sorted(set(widths)), key=widths.count, default=0)
    return max(0, usual - width)


def accept(fields, raw, line, names, dialect, columns, reading):
    """Makes a record or a reject of the fields of a record."""
    if len(fields) != len(names):
        reading.rejects.append(Reject(line, frozenset(["columns"]), raw))
        return

    causes, values, by_name = set(), {}, dict(zip(names, fields))
    # Bytes on both sides of a quote may be text without it: the file is none.
    if not is_text(raw):
        causes.add("utf8")
    for column in columns:
        value, is_quoted = by_name[column.name]
        if not is_text(value):
            continue
        try:
            values[column.name] = typed(value.decode(), is_quoted, column, dialect)
        except Unfit:
            causes.add("value:" + column.name)

    if causes:
        reading.rejects.append(Reject(line, frozenset(causes), raw))
    else:
        reading.records.append((line, values))


def is_text(value):
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def typed(text, is_quoted, column, dialect):
    """The value of a text in a column; None is null."""
    if column.kind == "text":
        return None if not is_quoted and text in dialect.null else text

    text = text.strip(BLANKS)
    if text in dialect.null:
        return None
    if column.kind in NUMBERS:
        plain = plain_number(text, column.decimal or dialect.decimal, column.thousands)
        number = exact(plain)
        if number is not None and any(exact(marker) == number for marker in dialect.null):
            return None
        return NUMBERS[column.kind](plain, number, column)
    if column.kind == "bool":
        return boolean(text)
    if column.kind == "date":
        return local_time(text, "%Y-%m-%d").date()
    return micros(text, column)


def exact(text):
    """A decimal number, or None if the text is none."""
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text.strip(BLANKS), re.A):
        return None
    return decimal.Decimal(text.strip(BLANKS))


def plain_number(text, point, thousands):
    """A number with a point before its fraction, and no separators."""
    if text.startswith("\u2212"):
        text = "-" + text[1:]
    whole, mark, fraction = text.partition(point)
    if thousands:
        separator = "[ \u00a0\u2009\u202f]" if thousands == " " else re.escape(thousands)
        if re.search(separator, fraction):
            raise Unfit
        if re.search(separator, whole):
            if not re.fullmatch(rf"[+-]?[1-9]\d{{0,2}}({separator}\d{{3}})+", whole, re.A):
                raise Unfit
            whole = re.sub(separator, "", whole)
    if point != "." and ("." in whole or "." in fraction):
        raise Unfit
    return whole + ("." if mark else "") + fraction


def whole_number(least, most):
    def parse(plain, _number, _column):
        if not re.fullmatch(r"[+-]?\d+" if least else r"\+?\d+", plain, re.A) or not least <= int(plain) <= most:
            raise Unfit
        return int(plain)

    return parse


def float_number(plain, number, _column):
    if number is None or float(plain) in (float("inf"), float("-inf")):
        raise Unfit
    return float(plain)


def decimal_number(plain, number, column):
    precision, scale = column.digits
    if number is None or "e" in plain.lower():
        raise Unfit
    scaled = number.scaleb(scale)
    if scaled != scaled.to_integral_value() or abs(scaled) >= 10**precision:
        raise Unfit
    return number


NUMBERS = {
    "int64": whole_number(-(2**63), 2**63 - 1),
    "uint64": whole_number(0, 2**64 - 1),
    "float64": float_number,
    "decimal": decimal_number,
}


def boolean(text):
    if text.lower() in ("true", "t", "yes", "1", "y"):
        return True
    if text.lower() in ("false", "f", "no", "0", "n"):
        return False
    raise Unfit


# Names of months as English abbreviates them; %b reads whole names and those of other languages, too.
MONTHS = {"märz": "Mar", "mär": "Mar", "mai": "May", "okt": "Oct", "dez": "Dec"}


def local_time(text, form):
    """A time without an offset, by strftime; 24:00 is the midnight that ends the day. `%.f` is an optional fraction behind a point."""
    fraction = 0
    if form.endswith("%.f"):
        form = form.removesuffix("%.f")
        if found := re.fullmatch(r"(.*?)\.(\d+)", text, re.A):
            text, digits = found.groups()
            fraction = int((digits + "000000")[:6])

    midnight, zeros = text, 0
    for written, hour, day in [("%H:%M:%S", "24:00?:00?", ".*?"), ("%H:%M", "24:00?", ".*?"), ("%Y%m%d%H%M%S", "240000?", ".{8}")]:
        if form.endswith(written) and (found := re.fullmatch(rf"({day})24({hour[2:]})", text)) and not fraction:
            midnight, zeros = found[1] + "00" + found[2], 1
            break
    # A day may be written with a blank before it; other blanks must be as the form has them.
    midnight = re.sub(r"^(\d{4}-\d\d?-) (?=\d)", r"\1", midnight)
    if re.search(r"\s\s|^\s|\s$|[^\S ]", midnight) or " " in midnight and " " not in form:
        raise Unfit
    if not re.search(r"[^%\w]", form) and not re.fullmatch(r"\d{13,14}", midnight, re.A):
        raise Unfit
    if re.fullmatch(r"\d{13}", midnight, re.A):
        midnight = midnight[:12] + "0" + midnight[12:]
    if "%b" in form:
        midnight = re.sub(r"[^\W\d_]{3,}", lambda word: MONTHS.get(word[0].lower(), word[0]), midnight)
    try:
        found = datetime.datetime.strptime(midnight, form)
        return found + datetime.timedelta(days=zeros, microseconds=fraction)
    except (ValueError, OverflowError):
        raise Unfit from None


ISO = re.compile(r"(\d{4})-(\d\d?)-( ?\d\d?)[Tt ](\d\d?):(\d\d?)(?::(\d\d?)(?:[.,](\d+))?)?([Zz]|[+-]\d\d:?(?:\d\d)?)?", re.A)


def iso_time(text, zone):
    """An RFC 3339 time, in `zone` if it has no offset."""
    found = ISO.fullmatch(text)
    if not found:
        raise Unfit
    *calendar, second, digits, offset = found.groups()
    year, month, day, hour, minute = map(int, calendar)
    second, fraction = int(second or 0), int(((digits or "") + "000000")[:6])
    ends_day = (hour, minute, second, (digits or "").strip("0")) == (24, 0, 0, "")
    try:
        time = datetime.datetime(year, month, day, 0 if ends_day else hour, minute, second, fraction)
        shift = datetime.timedelta(days=1 if ends_day else 0)
        if not offset:
            return in_zone(time + shift, zone)
        if offset not in "Zz":
            hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
            if hours > 23 or minutes > 59:
                raise Unfit
            shift -= datetime.timedelta(hours=hours, minutes=minutes) * (-1 if offset[0] == "-" else 1)
        return (time + shift).replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        raise Unfit from None


def in_zone(time, zone):
    """The first instant at which clocks of a zone show a time; none if they skip it."""
    found = time.replace(tzinfo=zoneinfo.ZoneInfo(zone or "UTC")).astimezone(datetime.UTC)
    if found.astimezone(zoneinfo.ZoneInfo(zone or "UTC")).replace(tzinfo=None) != time:
        raise Unfit
    return found


def epoch_number(text, factor):
    """Microseconds of an epoch number with `factor` of them a unit; it may have a fraction and an exponent."""
    number = exact(text.replace(",", "."))
    if number is None:
        raise Unfit
    found = int(number * factor)
    if not -62135596800 * 10**6 <= found < 253402300800 * 10**6:
        raise Unfit
    return found


def micros(text, column):
    """A time in microseconds since the epoch; digits beyond are cut off."""
    if column.format == "%s" and not re.fullmatch(r"-?\d+", text, re.A):
        raise Unfit
    if column.format in EPOCHS:
        return epoch_number(text, EPOCHS[column.format])
    try:
        if column.format is None:
            found = iso_time(text, column.timezone)
        else:
            found = in_zone(local_time(text, column.format), column.timezone)
    except OverflowError:
        raise Unfit from None
    return (found - EPOCH) // datetime.timedelta(microseconds=1)


EPOCHS = {"%s": 1_000_000, "s": 1_000_000, "ms": 1000}


@dataclasses.dataclass
class Loaded:
    """What a table knows of a file: its content, what ends its lines, and the breaks that no record crosses."""

    content: bytes = b""
    newline: bytes | None = None
    breaks: tuple = ()
    reading: Reading = dataclasses.field(default_factory=Reading)


def load(content, dialect, columns, before=None):
    """Reads a file as a run does that has loaded `before`, of which the file is a continuation."""
    newline, breaks = newline_of(content), ()
    if before is not None and before.reading.records:
        newline, breaks = before.newline or newline, before.breaks
        breaks += broken_at(before, content)
    reading = read(content, dialect, columns, newline, breaks)
    return Loaded(content, newline, breaks, reading)


def broken_at(before, content):
    """The old end of a file as a break, if a quote was open there and rows stood behind it.

    If the last line had no end and goes on, the break is before that line: it is replaced by the whole one.
    """
    opened = before.reading.open_line
    if opened is None or all(line <= opened for line, _values in before.reading.records):
        return ()
    old_end = len(before.content)
    line_end = before.newline or b"\n"
    whole = before.content.endswith(line_end) or content[old_end:].lstrip(b"\r").startswith(line_end)
    return (old_end if whole else before.content.rfind(line_end) + 1,)
