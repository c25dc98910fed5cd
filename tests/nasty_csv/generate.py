"""Makes CSV files as nasty as people have them, from a seed: dialects with typed columns, files of each, and how files grow."""

import dataclasses
import datetime

from reference import BOM, EPOCHS, Column, Dialect, newline_of, read

# Kinds of input on which the documents and the reader still differ, and why. They are not made, and only that; nothing else is loosened.
OPEN = {
    "headerless-first": "without a header, most of the first lines decide whether the path gives columns",
}

SOURCES = 24

# Names of columns that are not declared.
OTHERS = ["other", "more", "kWh [Σ]", "#1", "a;b", "a,b", 'q"r', "q'r", "two\nlines", " ", "x|y"]
LINE_ENDS = {
    "lf": [b"\n"],
    "crlf": [b"\r\n"],
    "crcrlf": [b"\r\r\n"],
    "mixed": [b"\n", b"\r\n", b"\r\r\n", b"\r\r\r\n"],
    "cr": [b"\r"],
}
NULLS = [("",), ("", "NA"), ("NA",), ("", "-9999"), ("-", "", "n/a"), ("NULL", "")]
WORDS = ["a", "Zürich", "x y", "北京", "0", "1.5", "NA", "", " ", "-9999", "id", "ts", "#", "a#b", "\\", "\\\\", "a\\", "tab\there", "-", "🙂",
         "\u00a0", "null", "\u2028", "\x85", "=1+1", "'", "''", "a'b", "sep=;"]
PIECES = ['"', '""', "'", "\\", '\\"', ",", ";", "\t", "|", "\n", "\r\n", "\r", "a", "b", " ", "#", "é"]
NUMBERS = ["0", "-0.0", "+3.2", ".5", "5.", "1e1", "1E+5", "-7.25", "00123.9", "9007199254740993", "1e-7", "\u22125.5", " 4", "4 ", "\u00a04\u202f",
           "", "  ", "NA", "-9999", "-9999.0", " -9999 ", "x", "--5", "- 5", "1e999", "inf", "NaN", "1,5", "1.234,5", "1,234.5", "1 234", "1'234",
           "12,34", "0x10", "1_000", "5\x00", "1.5.5", "\u0661", "123456789012", "3", "42", "18446744073709551615", "9223372036854775808", "1.234"]
TIMES = ["", "x", "2020-02-30T00:00:00Z", "2020-01-02T25:00:00Z", "2020-01-02", "1969-12-31T23:59:59Z", "31/02/2020 00:00", "99999999999999",
         "2020-01-02T24:00:01Z", "0", "-5", "1600000000.", "2020-13-01 00:00:00"]


@dataclasses.dataclass
class Source:
    """A dialect with its columns, and whether its files grow."""

    name: str
    dialect: Dialect
    columns: list
    grows: bool


@dataclasses.dataclass
class File:
    """A file of a source: its folder, and its name and content in each run."""

    source: Source
    folder: str
    states: list


class Generator:
    """Everything that is drawn comes from `rng`, so that a seed gives the same files again."""

    def __init__(self, rng):
        self.rng = rng

    def often(self, share):
        return self.rng.random() < share

    def batch(self, files):
        """Sources, every third of which grows, and their files."""
        sources = [self.source(f"s{i}", grows=i % 3 == 2) for i in range(min(SOURCES, files))]
        return sources, [self.file(sources[i % len(sources)], i) for i in range(files)]

    def source(self, name, grows):
        rng = self.rng
        delimiter = rng.choice([b",", b",", b",", b";", b"\t", b"|"])
        dialect = Dialect(
            delimiter=delimiter,
            quote=rng.choice([b'"'] * 8 + [b"'", b"'", None]),
            escape=b"\\" if self.often(0.25) else None,
            comment=b"#" if self.often(0.25) else None,
            decimal="," if delimiter != b"," and self.often(0.3) else ".",
            header=not self.often(0.15),
            skip=rng.choice([1, 2, 4]) if self.often(0.15) else 0,
            null=rng.choice(NULLS),
        )
        return Source(name, dialect, self.columns(dialect), grows)

    def columns(self, dialect):
        rng = self.rng
        time = rng.choice([None, None, "%s", "s", "ms", "%d/%m/%Y %H:%M", "%Y%m%d%H%M%S", "%Y-%m-%d %H:%M:%S%.f", "%d %b %Y %I:%M %p"])
        zone = "Europe/Paris" if time not in EPOCHS and self.often(0.2) else None
        found = [Column("id", rng.choice(["text", "text", "uint64", "int64"])), Column("ts", "timestamp", format=time, timezone=zone)]
        for name in rng.sample(["a", "b", "x", "n", "u", "d", "o", "y", "w"], rng.randint(2, 5)):
            kind = {"a": "text", "b": "text", "x": "float64", "n": "int64", "u": "uint64", "d": "decimal", "o": "bool", "y": "date", "w": "timestamp"}[name]
            point = rng.choice([",", "."]) if kind in ("float64", "decimal") and self.often(0.3) else None
            thousands = rng.choice([",", ".", " ", "'"]) if kind in ("float64", "int64", "uint64", "decimal") and self.often(0.3) else None
            if thousands == (point or dialect.decimal):
                thousands = None
            found.append(Column(name, kind, digits=rng.choice([(9, 2), (6, 0), (18, 4)]), decimal=point, thousands=thousands))
        return found

    def file(self, source, number):
        content, least = self.content(source, number)
        folder, name = f"{number:06}", "a.csv"
        states = [(name, content)]
        if source.grows:
            cuts = sorted(self.cut(content, least) for _ in range(self.rng.choice([1, 1, 2, 3])))
            states = []
            for cut in [*cuts, len(content)]:
                if states and self.often(0.15) and is_whole(states[-1][1], source):
                    name = "b" + name
                states.append((name, content[:cut]))
            if newline_of(content) == b"\r" and is_whole(content, source):
                line = source.dialect.delimiter.join(self.field(column, source.dialect, number, 99) for column in source.columns)
                states.append((name, content + line.translate(None, b"\r\n") + b"\r\n"))
        return File(source, folder, states)

    def cut(self, content, least):
        """A place behind the header: often behind a line, else anywhere."""
        place = self.rng.randint(least, len(content)) if len(content) > least else least
        if self.often(0.6):
            found = max(content.rfind(b"\n", least, place), content.rfind(b"\r", least, place)) + 1
            place = max(found, least)
        return place

    def content(self, source, number):
        """The bytes of a file, and where its header ends."""
        rng, dialect = self.rng, source.dialect
        style = rng.choice(["lf"] * 4 + ["crlf"] * 2 + ["crcrlf", "mixed", "mixed", "cr"])
        ends = LINE_ENDS[style]

        head = BOM if self.often(0.15) else b""
        for _ in range(dialect.skip):
            head += rng.choice([b"Logger 7", b"", b'"', b"a,b;c", b"# made by x", "Größe".encode(), b"id,ts"]) + rng.choice(ends)
        names = [column.name for column in source.columns]
        header = b""
        if dialect.header:
            names += rng.sample(OTHERS if dialect.quote else OTHERS[:3], rng.choice([0, 0, 0, 1, 2]))
            rng.shuffle(names)
            header = dialect.delimiter.join(self.name(n.encode(), dialect) for n in names)
            head += header + rng.choice(ends)

        if not dialect.header and "headerless-first" in OPEN:
            # As many as are looked at.
            head += (dialect.delimiter.join(b"" for _ in names) + rng.choice(ends)) * 64
        lines = [self.line(source, names, header, number, row, style) for row in range(self.rows())]
        if dialect.quote and self.often(0.5 if source.grows else 0.2):
            lines = self.few_quotes(lines, dialect)
        body = b"".join(line + rng.choice(ends) for line in lines)
        if self.often(0.3):
            body = self.damaged(body, dialect)
        if self.often(0.3):
            body = body.rstrip(b"\r\n")
        if style == "cr":
            body = body.replace(b"\n", b"\r")
            head = head.replace(b"\n", b"\r")
        elif b"\n" not in head + body:
            body += b"\n"
        return head + body, len(head)

    def name(self, name, dialect):
        """A name in a header, quoted where it must be or by chance."""
        quote = dialect.quote
        if quote and (any(mark in name for mark in (dialect.delimiter, quote, b"\n")) or dialect.comment and name.startswith(dialect.comment) or self.often(0.1)):
            return quote + name.replace(quote, quote + quote) + quote
        return name

    def few_quotes(self, lines, dialect):
        """The lines with two to four quotes in all, each at the beginning or end of a field, so that a stray one reaches far."""
        rng, lines = self.rng, [line.replace(dialect.quote, b"") for line in lines]
        for _ in range(rng.randint(2, 4) if lines else 0):
            number = rng.randrange(len(lines))
            fields = lines[number].split(dialect.delimiter)
            place = rng.randrange(len(fields))
            fields[place] = dialect.quote + fields[place] if self.often(0.5) else fields[place] + dialect.quote
            lines[number] = dialect.delimiter.join(fields)
        return lines

    def rows(self):
        return self.rng.randint(2000, 20000) if self.often(0.0005) else self.rng.choice([0, 1, 2, 3, 5, 8, 12, 20])

    def line(self, source, names, header, number, row, style):
        """A record, or something that is none."""
        rng, dialect = self.rng, source.dialect
        if self.often(0.06):
            header = header if b"\n" not in header else b""
            return rng.choice([b"", b"   ", b"\r", b"#", b"#a,b", b'"', b"," * 5, header, BOM + header, b"\x00\x00\x00", b"kWh", b'#"', b"\t", b'""'])

        by_name = {column.name: column for column in source.columns}
        fields = [self.field(by_name.get(name), dialect, number, row) for name in names]
        if self.often(0.05):
            fields = fields[: rng.randint(0, len(fields))]
        if self.often(0.05):
            fields += [b"x"] * rng.randint(1, 2)
        return dialect.delimiter.join(fields)

    def field(self, column, dialect, number, row):
        """The bytes of one value, quoted where it must be or by chance."""
        rng = self.rng
        text = self.odd_text() if column is None else self.value(column, dialect, number, row)
        raw, quote = text.encode(), dialect.quote
        if quote is None:
            return raw if self.often(0.1) else raw.translate(None, dialect.delimiter + b"\r\n")
        must = any(mark in raw for mark in (dialect.delimiter, b"\n", b"\r")) or raw.startswith(quote)
        must = must or dialect.comment is not None and raw.startswith(dialect.comment)
        if self.often(0.02):
            raw = raw + rng.choice([b"\xff", b"\xe9", b"\xc3", b"\x00"])
        if not must and not self.often(0.12) or self.often(0.01):
            return raw

        if dialect.escape and self.often(0.5):
            raw = raw.replace(b"\\", b"\\\\").replace(quote, b"\\" + quote)
        elif not self.often(0.03):
            raw = raw.replace(quote, quote + quote)
        behind = rng.choice([b"x", b" ", quote, b"\\", b"\r", b' "']) if self.often(0.03) else b""
        close = b"" if self.often(0.015) else quote
        before = b" " if self.often(0.01) else b""
        return before + quote + raw + close + behind

    def odd_text(self):
        rng = self.rng
        if self.often(0.7):
            return rng.choice(WORDS)
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 6)))

    def value(self, column, dialect, number, row):
        """A text for a column: mostly one that fits."""
        rng = self.rng
        if column.name == "id":
            odd = self.often(0.04)
            if column.kind == "text":
                return self.odd_text() if odd else f"{number}-{row}"
            return rng.choice(NUMBERS) if odd else str(row)
        if column.kind == "text":
            return self.odd_text()
        if column.kind == "bool":
            return rng.choice(["true", "false", "TRUE", "t", "f", "1", "0", "yes", "no", "", " true ", "maybe"])
        if column.kind == "date":
            return rng.choice(["2020-01-01", "2020-12-31", " 2020-06-01 ", "", "2020-02-30", "x", "0001-01-01", "9999-12-31"])
        if column.kind == "timestamp":
            return rng.choice(TIMES) if self.often(0.08) else self.time(column.format, number, row)
        return self.number(column, dialect)

    def time(self, form, number, row):
        rng = self.rng
        time = datetime.datetime(2001, 1, 1) + datetime.timedelta(days=number % 5000, seconds=row % 80000, hours=1)
        if self.often(0.05):
            time = rng.choice([datetime.datetime(2001, 3, 25, 2, 30), datetime.datetime(2001, 10, 28, 2, 30), datetime.datetime(2001, 3, 25, 3)])
        if form in EPOCHS:
            text = str(int((time - datetime.datetime(1970, 1, 1)).total_seconds()) * 10**6 // EPOCHS[form])
            if form != "%s" and self.often(0.4):
                text = rng.choice([text + ".5", text + ".1234567", text + ",25", text + ".", f"{float(text):e}", text[0] + "." + text[1:] + f"e{len(text) - 1}", "+" + text])
        elif form is not None:
            text = time.strftime(form.removesuffix("%.f"))
            if form.endswith("%.f"):
                text += rng.choice(["", ".5", ".123456", ".1234567"])
            elif form.endswith("%H:%M") and self.often(0.05):
                text = time.strftime("%d/%m/%Y 24:00")
            elif form.endswith("%p") and self.often(0.3):
                text = rng.choice([text.lower(), text.replace("Mar", "März"), text.replace("Oct", "Okt"), text.upper()])
        else:
            text = time.strftime(rng.choice(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S,5Z", "%Y-%m-%dT%H:%M:%S.25+02:00",
                                             "%Y-%m-%dT%H:%M:%S-05:30", "%Y-%m-%dT24:00:00Z", "%Y-%m-%dT%H:%MZ"]))
        return " " + text + "\u00a0" if self.often(0.05) else text

    def number(self, column, dialect):
        rng = self.rng
        if self.often(0.3):
            return rng.choice(NUMBERS)
        value = rng.randint(0, 10 ** rng.randint(1, 8))
        if column.kind != "uint64" and self.often(0.3):
            value = -value
        text = f"{value:,}".replace(",", column.thousands) if column.thousands and self.often(0.7) else str(value)
        if column.kind in ("float64", "decimal") and self.often(0.5):
            text += (column.decimal or dialect.decimal) + str(rng.randint(0, 999))
        return text.replace("-", "\u2212") if self.often(0.1) else text

    def damaged(self, body, dialect):
        """A few bytes taken out, put in or doubled."""
        rng, content = self.rng, bytearray(body)
        for _ in range(rng.randint(1, 3)):
            if not content:
                break
            place = rng.randrange(len(content))
            piece = rng.choice([dialect.quote or b'"', b'""', dialect.delimiter, b"\n", b"\r", b"\r\n", b"\\", b" ", b"\x00", b"\xff", b"#", BOM])
            match rng.randrange(3):
                case 0:
                    del content[place : place + rng.choice([1, 1, 5])]
                case 1:
                    content[place:place] = piece
                case _:
                    content[place : place + 1] = piece
        return bytes(content)


def is_whole(content, source):
    """Whether a file ends behind a record, so that a renamed file that goes on is known by its start."""
    newline = newline_of(content)
    if newline is None or not content.endswith(newline):
        return False
    reading = read(content, source.dialect, source.columns)
    return bool(reading.records) and reading.open_line is None
