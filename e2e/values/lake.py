"""Exports a table of all types to folders, killed again and again, and compares what DuckDB and pyarrow read with the rows: lake.py TSIMPORT ROWS KILLS."""
import base64, hashlib, json, os, pathlib, random, subprocess, sys, tempfile, time

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

tsimport, rows, kills = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]), int(sys.argv[3])
schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("i", pa.int64()), ("d", pa.float64()), ("f", pa.bool_()), ("s", pa.string()),
                    ("b", pa.binary()), ("late", pa.int64())])
chance = random.Random(7)


def row(n):
    r = {"id": n, "k": f"k{n % 1000}", "i": chance.choice([0, -2**63, 2**63 - 1, n]), "d": chance.choice([0.0, -0.0, 5e-324, 1.7976931348623157e308, n + .1])}
    if n % 3:
        r["f"] = n % 2 == 0
    if n % 5:
        r["s"] = chance.choice(["", "007", 'é "q",\r\nx', f"text {n}", "NULL", " x "])
    if n % 2:
        r["b"] = chance.randbytes(chance.randrange(20))
    if n > rows * .9 and n % 7 == 0:
        r["late"] = n
    return r


def line(r):
    """A row as a self-describing line."""
    def cell(name, v):
        if isinstance(v, bytes):
            return {"C": name, "V": base64.b64encode(v).decode(), "T": "binary"}
        return {"C": name, "V": v, "IsInt": True} if type(v) is int else {"C": name, "V": v}
    return json.dumps({"Wide": True, "PK": {"Values": [cell(c, r[c]) for c in ("id", "k")]},
                       "Attr": {"Values": [cell(c, v) for c, v in r.items() if c not in ("id", "k")]}}) + "\n"


def export(place, how):
    """Kills the export several times, then lets it finish."""
    args = [tsimport, "export", "--table", "t", "-q", "--format", how, "--part-size", "256KiB", "-o", place]
    for _ in range(kills):
        p = subprocess.Popen(args, stderr=subprocess.PIPE)
        time.sleep(.1 + chance.random() / 4)
        p.kill()
        if p.communicate() and p.returncode >= 0:
            break  # the export was faster
    r = subprocess.run(args, capture_output=True, text=True)
    if r.returncode and "holds a complete export already" not in r.stderr:
        sys.exit(r.stderr)


def same(who, got):
    got = got.sort_by("id")
    for c in schema.names:
        a, b = (t.column(c).cast(schema.field(c).type).combine_chunks() for t in (got, want))
        if pa.types.is_floating(a.type):  # -0.0 is not 0.0
            a, b = (pa.Array.from_buffers(pa.int64(), len(x), x.buffers(), offset=x.offset) for x in (a, b))
        if not a.equals(b):
            sys.exit(f"{who} reads a different {c}")


def compare(base, how):
    manifest = json.loads((base / "_manifest.json").read_text())
    files = sorted(str(f.relative_to(base)) for f in base.rglob("part-*"))
    assert files == [f["name"] for f in manifest["files"]] and manifest["rows"] == rows
    assert all(hashlib.sha256((base / f["name"]).read_bytes()).hexdigest() == f["sha256"] for f in manifest["files"])
    if how == "parquet":
        same("pyarrow", pa.dataset.dataset(base, format="parquet", partitioning="hive").to_table(columns=schema.names))
        same("DuckDB", duckdb.sql(f"SELECT {', '.join(schema.names)} FROM read_parquet('{base}/**/*.parquet', hive_partitioning = true)").to_arrow_table())
        return
    text = pa.csv.ConvertOptions(column_types={f.name: pa.string() if f.name == "b" else f.type for f in schema}, strings_can_be_null=True,
                                 quoted_strings_can_be_null=False, null_values=[""])
    lines = pa.csv.ParseOptions(newlines_in_values=True)
    read = pa.concat_tables(pa.csv.read_csv(pa.input_stream(base / f, compression={"csv.zst": "zstd", "csv.gz": "gzip", "csv": None}[how]),
                                            convert_options=text, parse_options=lines).select(schema.names) for f in files)
    raw = pa.array([None if v is None else base64.b64decode(v) for v in read.column("b").to_pylist()], pa.binary())
    same("pyarrow", read.set_column(read.schema.names.index("b"), "b", raw))
    types = {"id": "BIGINT", "k": "VARCHAR", "i": "BIGINT", "d": "DOUBLE", "f": "BOOLEAN", "s": "VARCHAR", "b": "VARCHAR", "late": "BIGINT"}
    same("DuckDB", duckdb.sql(f"SELECT * REPLACE (from_base64(b) AS b) FROM read_csv('{base}/**/part-*', types = {types}, header = true, allow_quoted_nulls = false)").to_arrow_table())


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    table = [row(n) for n in range(rows)]
    pathlib.Path("in.jsonl").write_text("".join(map(line, table)))
    want = pa.table({c: [r.get(c) for r in table] for c in schema.names}, schema=schema)
    subprocess.run([tsimport, "load", "in.jsonl", "--table", "t", "--pk", "id:integer", "--pk", "k", "-q"], check=True)
    for how in ("parquet", "csv", "csv.gz", "csv.zst"):
        for folders in ("", "g={f}/h={s == nil ? nil : substr(s, 1, 3)}/"):
            base = pathlib.Path(folder, how + folders[:1])
            export(f"{base}/{folders}", how)
            compare(base, how)
            print(f"{how} {folders}: {rows} rows read back equal by pyarrow and DuckDB", flush=True)
