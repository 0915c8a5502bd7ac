"""Writes the files of this folder, and beside each what it holds, a line of JSON for each row: python3 make.py

It needs pyarrow, polars and duckdb. What is expected comes from the values that Python shows, not from how they are stored.
"""
import datetime as dt
import decimal
import json
import os
import struct
import uuid

import duckdb
import polars as pl
import pyarrow as pa

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def show(v, t):
    """How the reader gives a value at the top level: its kind and the value as text."""
    if isinstance(t, pa.ExtensionType) or isinstance(t, pa.BaseExtensionType):
        if t.extension_name == "arrow.uuid" and v.is_valid:
            return ["string", str(uuid.UUID(bytes=v.value.as_py()))]
        if t.extension_name == "arrow.bool8" and v.is_valid:
            return ["boolean", "true" if v.value.as_py() else "false"]
        return show(v.value, t.storage_type) if v.is_valid else ["null", ""]
    if isinstance(t, pa.DictionaryType):
        return show(v.dictionary[v.index.as_py()], t.value_type) if v.is_valid else ["null", ""]
    if isinstance(t, pa.RunEndEncodedType):
        return show(pa.scalar(v.as_py(), t.value_type), t.value_type)
    if isinstance(v, pa.UnionScalar):
        return ["json", nested(v, t)]
    if not v.is_valid:
        return ["null", ""]
    if pa.types.is_nested(t) or t == pa.month_day_nano_interval():
        return ["json", nested(v, t)]
    return plain(v, t)


def plain(v, t):
    if pa.types.is_boolean(t):
        return ["boolean", "true" if v.as_py() else "false"]
    if t == pa.uint64():
        return ["unsigned", str(v.as_py())]
    if pa.types.is_integer(t):
        return ["integer", str(v.as_py())]
    if pa.types.is_floating(t):
        return ["double", struct.pack(">d", float(v.as_py())).hex()]
    if pa.types.is_decimal(t):
        with decimal.localcontext() as c:
            c.prec = 100
            return ["decimal", str(int(v.as_py().scaleb(t.scale))) + "/" + str(t.scale)]
    if t == pa.date32():
        return ["date", str(v.value)]
    if t == pa.date64():
        return ["date", str(v.value // 86400000)]
    if pa.types.is_time(t):
        return ["time", f"{v.value}/{UNITS[t.unit]}"]
    if pa.types.is_timestamp(t):
        return ["timestamp", f"{v.value}/{UNITS[t.unit]}/{'local' if t.tz is None else 'utc'}"]
    if pa.types.is_duration(t):
        return ["integer", str(v.value)]
    if pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.string_view():
        return ["string", v.as_py()]
    return ["binary", v.as_py().hex()]


def nested(v, t):
    """A value within JSON. Numbers are [kind, text] too, compared as texts of JSON."""
    if isinstance(v, pa.UnionScalar):
        return {t.field(v_index(v, t)).name: nested(v.value, t.field(v_index(v, t)).type)}
    if v is None or not v.is_valid:
        return None
    if isinstance(t, pa.DictionaryType):
        return nested(v.dictionary[v.index.as_py()], t.value_type)
    if t == pa.month_day_nano_interval():
        return {"months": v.as_py()[0], "days": v.as_py()[1], "nanoseconds": v.as_py()[2]}
    if isinstance(t, pa.MapType):
        items = [(pa.scalar(k, t.key_type), pa.scalar(x, t.item_type)) for k, x in v.as_py()]
        if t.key_type == pa.string():
            return {nested(k, t.key_type): nested(x, t.item_type) for k, x in items}
        return [{"key": nested(k, t.key_type), "value": nested(x, t.item_type)} for k, x in items]
    if isinstance(t, pa.StructType):
        return {f.name: nested(v[f.name], f.type) for f in t}
    if pa.types.is_nested(t):
        return [nested(x, t.value_type) for x in v.values]
    kind, text = plain(v, t)
    if kind in ("integer", "unsigned"):
        return int(text)
    if kind == "boolean":
        return v.as_py()
    if t == pa.float32():  # the fewest digits that give it back
        texts = ("%.*g" % (n, v.as_py()) for n in range(1, 10))
        return next(float(x) for x in texts if struct.pack("f", float(x)) == struct.pack("f", v.as_py()))
    if kind == "double":
        return float(v.as_py())
    if kind == "string":
        return text
    if kind == "date":
        return v.as_py().isoformat()
    raise SystemExit(f"nested {t}")


def v_index(v, t):
    return next(i for i, c in enumerate(t.type_codes) if c == v.type_code)


def write(name, table, **options):
    """Writes a table as a file and as a stream, and what it holds."""
    for ending, new in ((".arrow", pa.ipc.new_file), (".arrows", pa.ipc.new_stream)):
        with pa.OSFile(os.path.join(HERE, name + ending), "wb") as f, new(f, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
            w.write_table(table)
    expect(name, table)


def expect(name, table):
    with open(os.path.join(HERE, name.split("_")[0] + ".want"), "w") as f:
        for i in range(table.num_rows):
            row = {n: show(table.column(k)[i], table.schema.field(k).type) for k, n in enumerate(table.schema.names)}
            f.write(json.dumps(row, ensure_ascii=True) + "\n")


def scalars():
    n = None
    day = dt.date
    wide = decimal.Decimal("-123456789012345678901234567890123456.78")
    columns = {
        "nothing": pa.array([n] * 5, pa.null()),
        "yes": pa.array([True, n, False, True, True]),
        "i8": pa.array([-128, 127, n, 0, 1], pa.int8()),
        "u8": pa.array([0, 255, n, 7, 1], pa.uint8()),
        "i16": pa.array([-32768, 32767, n, 0, 1], pa.int16()),
        "u16": pa.array([0, 65535, n, 7, 1], pa.uint16()),
        "i32": pa.array([-2**31, 2**31 - 1, n, 0, 1], pa.int32()),
        "u32": pa.array([0, 2**32 - 1, n, 7, 1], pa.uint32()),
        "i64": pa.array([-2**63, 2**63 - 1, n, 0, 1], pa.int64()),
        "u64": pa.array([0, 2**64 - 1, n, 2**63, 1], pa.uint64()),
        "f16": pa.array([1.5, -65504.0, n, 5.960464477539063e-08, 0.0], pa.float16()),
        "f32": pa.array([1.5, 3.4e38, n, -0.0, 0.1], pa.float32()),
        "f64": pa.array([1.5, 1.7e308, n, -0.0, 0.1], pa.float64()),
        "nan": pa.array([float("nan"), float("inf"), n, float("-inf"), 1.0], pa.float64()),
        "dec32": pa.array([decimal.Decimal("-1.25"), n, decimal.Decimal("9.99"), decimal.Decimal("0"), n], pa.decimal32(5, 2)),
        "dec64": pa.array([decimal.Decimal("-1.25"), n, decimal.Decimal("99999.99"), decimal.Decimal("0"), n], pa.decimal64(15, 2)),
        "dec128": pa.array([wide, n, decimal.Decimal("9.99"), decimal.Decimal("0"), n], pa.decimal128(38, 2)),
        "dec256": pa.array([wide * 10**30, n, decimal.Decimal("9.99"), decimal.Decimal("0"), n], pa.decimal256(76, 2)),
        "day32": pa.array([day(1970, 1, 1), n, day(1969, 12, 31), day(9999, 12, 31), day(1, 1, 1)], pa.date32()),
        "day64": pa.array([day(1970, 1, 1), n, day(1969, 12, 31), day(9999, 12, 31), day(1, 1, 1)], pa.date64()),
        "dur": pa.array([1, -5, n, 2**62, 0], pa.duration("us")),
        "mdn": pa.array([pa.MonthDayNano([1, -2, 3]), n, pa.MonthDayNano([0, 0, -2**62]), n, n]),
        "text": pa.array(["", "a", n, "größer \u0000 \"x\" 漢字", "y" * 300]),
        "large": pa.array(["", "a", n, "b" * 20, "c"], pa.large_string()),
        "view": pa.array(["", "twelve bytes", n, "thirteen byte", "longer than a view can hold"], pa.string_view()),
        "bin": pa.array([b"", b"\x00\xff", n, b"abc", b"d"]),
        "lbin": pa.array([b"", b"\x00\xff", n, b"abc", b"d"], pa.large_binary()),
        "vbin": pa.array([b"", b"\x00" * 40, n, b"abc", b"d" * 13], pa.binary_view()),
        "fixed": pa.array([b"abc", b"\x00\x01\x02", n, b"xyz", b"..."], pa.binary(3)),
        "id": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=5).bytes, n, uuid.UUID(int=2**128 - 1).bytes, n, n], pa.binary(16))),
        "b8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, n, -1, 5], pa.int8())),
        "words": pa.array(["x", n, "y", "x", "z"]).dictionary_encode(),
        "few": pa.DictionaryArray.from_arrays(pa.array([1, 0, n, 1, 1], pa.uint8()), pa.array([2.5, 10.0])),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int16()), pa.array(["a", n, "b"])),
    }
    for unit in UNITS:
        t = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        columns["time_" + unit] = pa.array([0, 86400 * UNITS[unit] - 1, n, 1, 2], t)
        columns["at_" + unit] = pa.array([0, -1, n, 1700000000 * UNITS[unit], 1], pa.timestamp(unit))
        columns["zoned_" + unit] = pa.array([0, -1, n, 1700000000 * UNITS[unit], 1], pa.timestamp(unit, "Asia/Shanghai"))
    return pa.table(columns)


def deep():
    n = None
    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    members = [pa.array([1, 2, 3, n, 5], pa.int32()), pa.array(["a", "b", "c", "d", "e"])]
    return pa.table({
        "id": pa.array([1, 2, 3, 4, 5]),
        "list": pa.array([[1, n], [], n, [3], [4, 5, 6]], pa.list_(pa.int64())),
        "large": pa.array([["a"], [], n, ["b", "c"], [n]], pa.large_list(pa.string())),
        "view": pa.array([[1, n], [], n, [3], [4, 5, 6]], pa.list_view(pa.int16())),
        "lview": pa.array([[1, n], [], n, [3], [4, 5, 6]], pa.large_list_view(pa.int16())),
        "pair": pa.array([[1, 2], [n, 3], n, [4, 5], [6, 7]], pa.list_(pa.int32(), 2)),
        "point": pa.array([{"x": 1, "y": "a"}, {"x": n, "y": n}, n, {"x": 2, "y": "b\n\"c\""}, {"x": 3, "y": ""}], point),
        "points": pa.array([[{"x": 1, "y": "a"}], [], n, [n], [{"x": 2, "y": n}]], pa.list_(point)),
        "map": pa.array([[("k", 1.5)], [], n, [("a", n), ("b", 0.1)], [("c", 2.0)]], pa.map_(pa.string(), pa.float32())),
        "pairs": pa.array([[(1, True)], [], n, [(2, n)], [(3, False)]], pa.map_(pa.int8(), pa.bool_())),
        "sparse": pa.UnionArray.from_sparse(pa.array([0, 1, 1, 0, 1], pa.int8()), members, ["num", "text"]),
        "dense": pa.UnionArray.from_dense(pa.array([0, 1, 1, 0, 0], pa.int8()), pa.array([0, 0, 1, 1, 2], pa.int32()),
                                          [pa.array([7, n, 9], pa.int64()), pa.array(["x", "z"])], ["num", "text"]),
        "coded": pa.array([["x", "y"], [], n, ["x"], [n]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        "days": pa.array([[dt.date(2024, 2, 29)], [], n, [n], [dt.date(1969, 12, 31)]], pa.list_(pa.date32())),
    })


def many():
    rows = 400
    return pa.table({
        "id": pa.array(range(rows)),
        "word": pa.array([f"w{i * 7919 % 31}" if i % 11 else None for i in range(rows)]),
        "code": pa.array([f"c{i % 17}" if i % 5 else None for i in range(rows)]).dictionary_encode(),
        "list": pa.array([list(range(i % 4)) if i % 7 else None for i in range(rows)], pa.list_(pa.int32())),
        "flag": pa.array([i % 3 == 0 if i % 13 else None for i in range(rows)]),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(10, rows + 1, 10), pa.int32()), pa.array(range(rows // 10), pa.int64())),
        "at": pa.array([{"a": i, "b": f"view of row number {i}"} if i % 6 else None for i in range(rows)], pa.struct([("a", pa.int64()), ("b", pa.string_view())])),
    })


def batched(table, rows):
    return pa.Table.from_batches(table.to_batches(max_chunksize=rows))


write("scalars", scalars())
write("nested", deep())
write("many_zstd", batched(many(), 150), compression="zstd")
write("many_lz4", batched(many(), 150), compression="lz4")
write("many", batched(many(), 128))
write("version4", scalars().select(["i64", "text", "words", "yes"]), metadata_version=pa.ipc.MetadataVersion.V4)
write("legacy", scalars().select(["i64", "text", "words", "yes"]), metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True)
write("deltas", pa.concat_tables([pa.table({"w": pa.array(x).dictionary_encode()}) for x in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"])]), emit_dictionary_deltas=True)

replaced = [pa.record_batch({"w": pa.array(x).dictionary_encode()}) for x in (["a", "b"], ["x", "y", "x"], ["q"])]
with pa.OSFile(os.path.join(HERE, "replaced.arrows"), "wb") as f, pa.ipc.new_stream(f, replaced[0].schema) as w:
    for b in replaced:
        w.write_batch(b)
expect("replaced", pa.Table.from_batches(replaced))

frame = pl.DataFrame({"id": [1, 2, 3], "s": ["a", None, "a string that is longer than twelve bytes"], "c": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
                      "l": [[1, 2], [], None], "t": [dt.datetime(2024, 5, 6, 7, 8, 9, 10), None, dt.datetime(1969, 1, 1)],
                      "d": pl.Series([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], dtype=pl.Decimal(20, 2)), "e": [{"a": 1}, {"a": None}, {"a": 3}]})
for compression in ("uncompressed", "lz4", "zstd"):
    frame.write_ipc(os.path.join(HERE, f"polars_{compression}.arrow"), compression=compression)
    expect(f"polars_{compression}", pa.ipc.open_file(os.path.join(HERE, f"polars_{compression}.arrow")).read_all())
frame.write_ipc_stream(os.path.join(HERE, "polars.arrows"))
expect("polars", pa.ipc.open_stream(os.path.join(HERE, "polars.arrows")).read_all())

result = duckdb.sql("select i::bigint as id, 'text ' || i as s, i % 3 = 0 as b, i::decimal(18,3) as d, [i, i+1] as l, {'a': i} as st, date '2024-01-01' + i::int as dd, i::hugeint as h, map {'k': i} as m, interval '1' month as iv, uuid() is not null as u from range(10) t(i)")
reader = result.to_arrow_reader(4) if hasattr(result, "to_arrow_reader") else result.fetch_arrow_reader(4)
with pa.OSFile(os.path.join(HERE, "duckdb.arrows"), "wb") as f, pa.ipc.new_stream(f, reader.schema) as w:
    for b in reader:
        w.write_batch(b)
expect("duckdb", pa.ipc.open_stream(os.path.join(HERE, "duckdb.arrows")).read_all())
