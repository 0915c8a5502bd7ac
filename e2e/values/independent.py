"""Reads files with programs that share no code with tsimport, and returns them as a table's cells: a dict by column of
("integer", int), ("double", float), ("boolean", bool), ("string", str) or ("binary", bytes), without the columns that have no value."""

import bz2, collections, csv, decimal, gzip, io, json, lzma, math, re, struct, uuid, zlib

csv.field_size_limit(1 << 30)
decimal.getcontext().prec = 2000


class Unreadable(Exception):
    """The independent reader cannot read the file."""


# ---- text

def unpack(path, compression):
    raw = open(path, "rb").read()
    match compression:
        case "none" | None | "":
            return raw
        case "gzip":
            return gzip.decompress(raw)
        case "bzip2":
            return bz2.decompress(raw)
        case "xz":
            return lzma.decompress(raw)
        case "zstd":
            import zstandard
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw), read_across_frames=True) as r:
                return r.read()
        case "lz4":
            import lz4.frame
            out = b""
            while raw:
                frame = lz4.frame.LZ4FrameDecompressor()
                out, raw = out + frame.decompress(raw), frame.unused_data
            return out
    raise Unreadable("no reader for " + compression)


def text_of(path, entry):
    try:
        raw = unpack(path, entry.get("compression"))
    except (OSError, EOFError, RuntimeError, lzma.LZMAError, zlib.error) as e:
        raise Unreadable(f"Python cannot unpack {entry['compression']}: {str(e)[:80]}")
    encoding = entry.get("encoding") or "utf-8"
    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if raw.startswith(mark):
            raw, encoding = raw[len(mark):], name
            break
    if encoding in ("unknown-8bit", "latin1"):
        encoding = "latin-1"
    if encoding == "ascii":
        encoding = "utf-8"
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError) as e:
        raise Unreadable(f"Python cannot decode it: {e.__class__.__name__}")


def names_of(header):
    """Names columns without a name by their position, and numbers repeated names."""
    taken = []
    for i, name in enumerate(header):
        base = name or f"c{i + 1}"
        unique, n = base, 2
        while unique in taken or unique != name and unique in header:
            unique, n = f"{base}_{n}", n + 1
        taken.append(unique)
    return taken


INTEGER = re.compile(r"(0|-?[1-9][0-9]*)\Z")
NUMBER = re.compile(r"-?[0-9.][0-9.eE+-]*\Z")


def is_integer(t):
    return bool(INTEGER.match(t)) and -2**63 <= int(t) < 2**63


def print_double(f):
    """The fewest digits that parse to the same double, without an exponent from 1e-7 up to 1e21."""
    digits = decimal.Decimal(repr(f))
    if f != 0 and (abs(f) < 1e-7 or abs(f) >= 1e21):
        sign, ds, exp = digits.as_tuple()
        ds = "".join(map(str, ds)).rstrip("0") or "0"
        e = digits.adjusted()
        return ("-" if sign else "") + ds[0] + ("." + ds[1:] if len(ds) > 1 else "") + f"e{'-' if e < 0 else '+'}{abs(e):02d}"
    text = format(digits, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def print_java(f):
    """A double as Java prints it: below 1e-3 and from 1e7, with one digit before the point and an exponent."""
    if f == 0 or 1e-3 <= abs(f) < 1e7:
        return repr(f)
    digits = decimal.Decimal(repr(f))
    ds = "".join(map(str, digits.as_tuple().digits)).rstrip("0")
    return f"{'-' if f < 0 else ''}{ds[0]}.{ds[1:] or '0'}E{digits.adjusted()}"


def is_double(t):
    """Whether Go, Python, Java or C (with 17 digits) print the double as this text."""
    if not NUMBER.match(t):
        return False
    try:
        f = float(t)
    except ValueError:
        return False
    return math.isfinite(f) and t in (print_double(f), repr(f), print_java(f), f"{f:.17g}")


def type_of_texts(texts):
    if all(map(is_integer, texts)):
        return "integer"
    if all(map(is_double, texts)):
        return "double"
    if all(t in ("true", "false") for t in texts):
        return "boolean"
    return "string"


MAKE = {"integer": int, "double": float, "boolean": lambda t: t == "true", "string": str}


RULES = collections.Counter()  # number of files that could be read only by a rule of tsimport's docs, by rule
LONE_CR = "\ue000cr\ue000"
MARK = "\ue000empty\ue000"


def parse_csv(text, delimiter):
    """The records, with MARK for empty fields in quotes. The csv of Python 3.11 does not distinguish these from empty fields
    without quotes, so the text is read twice, once with text inside such quotes: those fields differ."""
    if "\n" in text and re.search(r"\r(?!\r*(?:\n|\Z))", text):
        RULES["a lone CR in a text whose lines end with LF is data; Python's csv ends a record there"] += 1
        text = re.sub(r"\r(?!\r*(?:\n|\Z))", LONE_CR, text)
    records = parse_marked(text, delimiter)
    return [[f.replace(LONE_CR, "\r") for f in r] for r in records]


def parse_marked(text, delimiter):
    plain = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    d = re.escape(delimiter)
    marked = re.sub(rf'(^|[\r\n]|{d})""(?={d}|[\r\n]|\Z)', lambda m: m[1] + '"' + MARK + '"', text)
    marked = re.sub(rf'({d})""(?={d}|[\r\n]|\Z)', lambda m: m[1] + '"' + MARK + '"', marked)
    other = list(csv.reader(io.StringIO(marked, newline=""), delimiter=delimiter))
    if [len(r) for r in plain] != [len(r) for r in other]:
        return plain
    return [[b if a == "" and b == MARK else a for a, b in zip(r, q)] for r, q in zip(plain, other)]


def csv_rows(path, entry, rejects):
    text = text_of(path, entry)
    delimiter = entry.get("delimiter") or ","
    if len(delimiter) != 1:
        raise Unreadable("Python's csv takes delimiters of one character")
    records = parse_csv(text, delimiter)
    if records and len(records[0]) == 1:
        records = [r or [""] for r in records]  # in a file of one column, an empty line is a record
    else:
        records = [r for r in records if r]
    header = entry.get("header")
    if header:
        names, records = names_of(records[0]), records[1:]
    else:
        names = [f"c{i + 1}" for i in range(len(records[0]))] if records else []
    if any(len(r) != len(names) for i, r in enumerate(records) if i + 1 not in rejects):
        raise Unreadable("its records have different numbers of fields: Python's csv and tsimport treat those differently")
    records = [r for i, r in enumerate(records) if i + 1 not in rejects]
    types = []
    for i in range(len(names)):
        texts = [r[i].replace(MARK, "") for r in records if r[i] != ""]
        types.append(type_of_texts(texts) if texts else "string")
    for r in records:
        yield {n: (t, MAKE[t](v.replace(MARK, ""))) for n, t, v in zip(names, types, r) if v != ""}


# ---- JSON

class Literal(str):
    """A number in the form that it has in the file."""


def keeps(text, f):
    """Whether a double, rounded to the number's significant digits, equals the number."""
    if not math.isfinite(f):
        return False
    given = decimal.Decimal(text)
    if given == 0:
        return True
    digits = "".join(map(str, given.as_tuple().digits)).lstrip("0").rstrip("0")
    if f == 0:
        return False
    return decimal.Decimal("%.*e" % (len(digits) - 1, f)) == given


def natural(v):
    if isinstance(v, Literal):
        if re.match(r"-?[0-9]+\Z", v) and v != "-0":
            return "integer" if -2**63 <= int(v) < 2**63 else "long"
        return "double" if keeps(v, float(v)) else "long"
    if isinstance(v, bool):
        return "boolean"
    return "string"


def unique(pairs):
    d = dict(pairs)
    if len(d) != len(pairs):
        raise ValueError("a key is repeated")
    return d


def json_rows(path, entry, rejects):
    text = text_of(path, entry)
    decoder = json.JSONDecoder(parse_float=Literal, parse_int=Literal, parse_constant=lambda c: 1 / 0, object_pairs_hook=unique)
    try:
        whole = decoder.decode(text)
        records = whole if isinstance(whole, list) else [whole]
    except (ValueError, ZeroDivisionError):
        try:
            records = [decoder.decode(line) for line in re.split(r"\r?\n", text) if line.strip()]
        except (ValueError, ZeroDivisionError) as e:
            raise Unreadable("Python's json cannot parse it")
    if any(not isinstance(r, dict) for r in records):
        raise Unreadable("it contains values other than objects")
    records = [r for i, r in enumerate(records) if i + 1 not in rejects]
    kinds = {}
    for r in records:
        for k, v in r.items():
            if v is not None:
                kinds.setdefault(k, set()).add(natural(v))
    keys = list(dict.fromkeys(k for r in records for k in r))
    names = dict(zip(keys, names_of(keys)))
    for r in records:
        yield {names[k]: json_cell(v, kinds[k]) for k, v in r.items() if v is not None}


def json_cell(v, kinds):
    if isinstance(v, (dict, list)):
        return ("nested", v)
    if isinstance(v, Literal):
        own = natural(v)
        if own == "long" or "long" in kinds and not kinds & {"boolean"} and len(kinds - {"long", "integer", "double"}) == 0:
            return ("string", str(v))
        if own == "integer" and "double" in kinds and kinds <= {"integer", "double"}:
            return ("double", float(v)) if float(v) == int(v) else ("any", v)
        return (own, int(v) if own == "integer" else float(v))
    if isinstance(v, bool):
        return ("boolean", v)
    return ("string", v)


# ---- Parquet

def civil(days):
    """The date of a day counted from 1970-01-01, in any year."""
    days += 719468
    era, doe = divmod(days, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    d, m = doy - (153 * mp + 2) // 5 + 1, mp + 3 if mp < 10 else mp - 9
    y = yoe + era * 400 + (m <= 2)
    return f"{'-' if y < 0 else ''}{abs(y):04d}-{m:02d}-{d:02d}"


UNITS = {"s": (1, 0), "ms": (10**3, 3), "us": (10**6, 6), "ns": (10**9, 9)}


def clock(n, unit, trim):
    per, digits = UNITS[unit]
    s, rest = divmod(n, per)
    text = f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}"
    fraction = f".{rest:0{digits}d}" if digits else ""
    return text + (fraction.rstrip("0").rstrip(".") if trim else fraction)


def time_text(n, t, trim=False):
    import pyarrow as pa
    if pa.types.is_date32(t):
        return civil(n)
    if pa.types.is_time(t):
        return clock(n, t.unit, trim)
    day, rest = divmod(n, 86400 * UNITS[t.unit][0])
    return civil(day) + "T" + clock(rest, t.unit, trim) + ("Z" if t.tz else "")


def arrow_integers(array):
    import pyarrow as pa
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return array.view(width)


def arrow_cells(array):
    """Yields a cell or None for each value of an Arrow array."""
    import pyarrow as pa
    t = array.type
    is_ = pa.types
    if is_.is_dictionary(t):
        array = array.dictionary_decode()
        t = array.type
    if isinstance(t, pa.ExtensionType):
        if "uuid" in str(t).lower():
            for v in array.storage.to_pylist():
                h = v and v.hex()
                yield None if v is None else ("string", f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}")
            return
        array, t = array.storage, array.storage.type
    if is_.is_date32(t) or is_.is_time(t) or is_.is_timestamp(t):
        for v in arrow_integers(array).to_pylist():
            yield None if v is None else ("string", time_text(v, t))
    elif is_.is_decimal(t):
        for v in array.to_pylist():
            yield None if v is None else ("string", format(v, "f"))
    elif is_.is_integer(t):
        values = array.to_pylist()
        long = any(v is not None and v >= 2**63 for v in values)
        for v in values:
            yield None if v is None else ("string", str(v)) if long else ("integer", v)
    elif is_.is_floating(t):
        for v in array.to_pylist():
            yield None if v is None else ("double", float(v))
    elif is_.is_boolean(t):
        for v in array.to_pylist():
            yield None if v is None else ("boolean", v)
    elif is_.is_string(t) or is_.is_large_string(t):
        for v in array.to_pylist():
            yield None if v is None else ("string", v)
    elif is_.is_binary(t) or is_.is_large_binary(t) or is_.is_fixed_size_binary(t):
        for v in array.to_pylist():
            yield None if v is None else ("binary", v)
    elif is_.is_null(t):
        for _ in range(len(array)):
            yield None
    elif is_.is_nested(t):
        for v in nested(array):
            yield None if v is None else ("nested", v)
    else:
        raise Unreadable(f"no rule for Arrow's {t}")


def nested(array):
    """Converts nested values to what their JSON text parses to; numbers are Literals, 32-bit floats ("float32", f)."""
    import pyarrow as pa
    t, is_ = array.type, pa.types
    valid = array.is_valid().to_pylist()
    if is_.is_map(t):
        keys, items, offsets = nested(array.keys), nested(array.items), array.offsets.to_pylist()
        out = []
        for i, ok in enumerate(valid):
            pairs = list(zip(keys[offsets[i]:offsets[i + 1]], items[offsets[i]:offsets[i + 1]])) if ok else None
            if ok and (is_.is_string(t.key_type) or is_.is_large_string(t.key_type)):
                pairs = dict(pairs)
            elif ok:
                pairs = [{"key": k, "value": v} for k, v in pairs]
            out.append(pairs)
        return out
    if is_.is_list(t) or is_.is_large_list(t):
        inner, offsets = nested(array.values), array.offsets.to_pylist()
        return [inner[offsets[i]:offsets[i + 1]] if ok else None for i, ok in enumerate(valid)]
    if is_.is_struct(t):
        fields = [(t.field(i).name, nested(array.field(i))) for i in range(t.num_fields)]
        return [{n: f[i] for n, f in fields} if ok else None for i, ok in enumerate(valid)]
    if is_.is_date32(t) or is_.is_time(t) or is_.is_timestamp(t):
        return [None if v is None else time_text(v, t, trim=True) for v in arrow_integers(array).to_pylist()]
    out = []
    for cell in arrow_cells(array):
        if cell is None:
            out.append(None)
        elif cell[0] == "integer" or is_.is_decimal(t) or is_.is_integer(t):
            out.append(Literal(cell[1]))
        elif cell[0] == "double":
            out.append(("float32" if is_.is_float32(t) else "double", cell[1]))
        elif cell[0] == "binary":
            import base64
            out.append(base64.b64encode(cell[1]).decode())
        else:
            out.append(cell[1])
    return out


def far_int96(path):
    """The top-level INT96 timestamps in microseconds, by the column's position."""
    import pyarrow.parquet as pq
    f = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    wide = {f.schema.column(i).path for i in range(len(f.schema)) if f.schema.column(i).physical_type == "INT96"}
    if not wide:
        return {}
    table = f.read()
    return {i: [v for chunk in table.column(i).chunks for v in arrow_integers(chunk).to_pylist()]
            for i, name in enumerate(table.column_names) if name in wide}


def parquet_rows(path, entry, rejects):
    import pyarrow as pa
    import pyarrow.parquet as pq
    try:
        table = pq.ParquetFile(path, arrow_extensions_enabled=False).read()
        table.validate(full=True)
    except Exception as e:  # noqa: BLE001: after any error, this reader has no opinion
        raise Unreadable("pyarrow: " + str(e).split("\n")[0][:90])
    names = names_of(table.column_names)
    columns = []
    far = far_int96(path)
    schema = pq.ParquetFile(path).schema
    enums = {schema.column(i).path for i in range(len(schema)) if schema.column(i).logical_type.type == "ENUM"}
    uuids = {schema.column(i).path for i in range(len(schema)) if schema.column(i).logical_type.type == "UUID"}
    for position, c in enumerate(table.columns):
        array = c.combine_chunks() if c.num_chunks != 1 else c.chunk(0)
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        columns.append(list(arrow_cells(array)))
        if table.column_names[position] in enums:
            columns[-1] = [c and ("string", c[1].decode()) for c in columns[-1]]
        if table.column_names[position] in uuids:
            columns[-1] = [c and ("string", str(uuid.UUID(bytes=c[1]))) if c is None or c[0] == "binary" else c for c in columns[-1]]
        if position in far:  # values out of the range of nanoseconds are given in microseconds
            for i, micros in enumerate(far[position]):
                if micros is not None and not -9223372036 <= micros // 10**6 < 9223372036:
                    columns[-1][i] = ("string", time_text(micros, pa.timestamp("us")))
    for i in range(table.num_rows):
        if i + 1 in rejects:
            continue
        yield {n: c[i] for n, c in zip(names, columns) if c[i] is not None}


# ---- comparing

def float32(f):
    return struct.unpack("f", struct.pack("f", f))[0]


def same_nested(want, got):
    """Whether JSON text, parsed with Literals, equals the expected value."""
    if isinstance(want, tuple):
        if not isinstance(got, Literal):
            return False
        f = float(got)
        return (float32(f) if want[0] == "float32" else f) == want[1]
    if isinstance(want, Literal):
        return isinstance(got, Literal) and (want == got)
    if isinstance(want, dict):
        return isinstance(got, dict) and list(want) == list(got) and all(same_nested(want[k], got[k]) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(same_nested, want, got))
    return type(want) is type(got) and want == got


def same(want, got):
    """Whether a cell of the table is the expected cell. Doubles are compared by their bits."""
    if want is None or got is None:
        return want is got
    if want[0] == "nested":
        if got[0] != "string":
            return False
        return same_nested(want[1], json.loads(got[1], parse_float=Literal, parse_int=Literal))
    if want[0] == "any":
        return got[0] == natural(want[1])
    if want[0] != got[0]:
        return False
    if want[0] == "double":
        return struct.pack("d", want[1]) == struct.pack("d", got[1])
    return want[1] == got[1]
