"""Loads every file of a collection and compares each cell of the table with what an independent reader returns.

    values.py TSIMPORT COLLECTION [WORD]

It reads the files whose path contains WORD, or all; prints the numbers of files and cells and each difference; and fails if
a difference has no rule. Rejected records are counted by code and not compared."""

import base64, collections, concurrent.futures, json, os, subprocess, sys, tempfile

import independent
from independent import Literal, Unreadable, csv_rows, json_rows, parquet_rows, same

READERS = {"csv": csv_rows, "json": json_rows, "jsonl": json_rows, "parquet": parquet_rows}

# The rules that explain intended differences, by file.
RULES = {
    "parquet/duckdb/data/parquet-testing/complex.parquet": "an ENUM is text, nested too; pyarrow gives its bytes",
    "parquet/duckdb/data/parquet-testing/empty-group/empty_group_test.parquet":
        "a group without columns has no levels to say whether it is there; it is an empty object, pyarrow takes it for absent",
    "parquet/velox/dwio/parquet/tests/examples/varbinary_flba.parquet":
        "the Julian day 0 of INT96 is -4713-11-24; pyarrow gives 1970-01-01 for what it has no room for",
}


class Refused(Exception):
    """The loader rejected the file."""


def flags(entry):
    yield from ("--format", "jsonl" if entry["format"] == "json" else entry["format"])
    if entry["format"] == "csv":
        yield from ("--delimiter", entry.get("delimiter") or ",")
        if not entry.get("header"):
            yield "--no-header"
    encoding = entry.get("encoding") or ""
    if entry["format"] != "parquet":
        if encoding in ("latin1", "unknown-8bit"):
            yield from ("--encoding", "latin1")
        elif encoding in ("gb18030", "utf-16le", "utf-16be"):
            yield from ("--encoding", encoding)


def deliver(program, path, entry, folder):
    """Returns the rows of a new table that the file was loaded into, in the file's order, and the rejected records by number."""
    run, store = os.path.join(folder, "run"), os.path.join(folder, "store")
    load = subprocess.run([program, "load", path, "--store", store, "--table", "t", "--create", "--pk", '__k="k"', "--pk", "__n:auto", "--at-least-once",
                           "--max-errors", "-1", "--run-dir", run, "-q", "--sync", "none", *flags(entry)], capture_output=True, text=True, cwd=folder)
    if load.returncode not in (0, 3):
        raise Refused(load.stderr.strip().split("\n")[-1][:200])
    rejects = {}
    if os.path.exists(os.path.join(run, "rejects.jsonl")):
        for line in open(os.path.join(run, "rejects.jsonl"), encoding="utf-8"):
            reject = json.loads(line)
            rejects[reject["record"]] = reject["code"]
    out = os.path.join(folder, "out.jsonl")
    export = subprocess.run([program, "export", "--store", store, "--table", "t", "--format", "jsonl", "-o", out, "-q"], capture_output=True, text=True, cwd=folder)
    if export.returncode != 0:
        if "no such table" in export.stderr:
            return [], rejects  # nothing to load, no table
        raise RuntimeError("export: " + export.stderr)
    rows = []
    for line in open(out, encoding="utf-8", newline="\n"):
        row = json.loads(line, parse_float=Literal, parse_int=Literal)
        number = int(row.pop("__n"))
        row.pop("__k")
        rows.append((number, {name: cell(v) for name, v in row.items()}))
    return [row for _, row in sorted(rows, key=lambda r: r[0])], rejects


def cell(v):
    if isinstance(v, Literal):
        if any(c in v for c in ".eE"):
            return ("double", float(v))
        return ("integer", int(v))
    if isinstance(v, bool):
        return ("boolean", v)
    if isinstance(v, dict):
        return ("binary", base64.b64decode(v["base64"]))
    return ("string", v)


def compare(want, got):
    """Returns the number of cells compared and the differences."""
    if len(want) != len(got):
        return 0, [f"{len(got)} rows delivered, {len(want)} wanted"]
    cells, wrong = 0, []
    for i, (w, g) in enumerate(zip(want, got)):
        for name in w.keys() | g.keys():
            cells += 1
            if not same(w.get(name), g.get(name)):
                wrong.append(f"row {i + 1}, column {name}: delivered {g.get(name)!r:.120}, wanted {w.get(name)!r:.120}")
    return cells, wrong


def check(program, collection, entry):
    """Returns the result for a file: its kind, and its details."""
    kind, path = entry["format"], os.path.join(collection, entry["path"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            got, rejects = deliver(program, path, entry, folder)
        except Refused as e:
            return "refused", f"{entry['path']}: {e}", {}
    try:
        want = list(READERS[kind](path, entry, rejects))
    except Unreadable as e:
        return "unread", f"{kind}: {e}", {}
    return "compared", compare(want, got), rejects


def main():
    program, collection = map(os.path.abspath, sys.argv[1:3])
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    files, cells, rejected, unread = (collections.Counter() for _ in range(4))
    refused, ruled, failed = [], [], 0
    entries = [e for e in json.load(open(os.path.join(collection, "manifest.json"), encoding="utf-8"))
               if e["format"] in READERS and word in e["path"]
               and (e.get("expected") == "ok" or e.get("expected") == "any" and e["format"] != "csv")]  # CSV can be meant in several ways
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, (what, found, rejects) in zip(entries, pool.map(lambda e: check(program, collection, e), entries)):
            kind = entry["format"]
            if what == "unread":
                unread[found] += 1
                continue
            if what == "refused":
                refused.append(found)
                continue
            n, wrong = found
            files[kind] += 1
            cells[kind] += n
            rejected.update(f"{kind}: {code}" for code in rejects.values())
            if wrong and entry["path"] in RULES:
                ruled.append(f"{entry['path']}: {len(wrong)} differences by rule: {RULES[entry['path']]}")
            elif wrong:
                failed += len(wrong)
                print(f"{entry['path']}: {len(wrong)} differences; {wrong[0]}", flush=True)
    for text, n in sorted(unread.items()):
        print(f"no independent reader for {n} files: {text}")
    for line in refused:
        print("rejected by the loader, so not compared:", line)
    for rule, n in sorted(independent.RULES.items()):
        print(f"{n} files are read with a rule: {rule}")
    for line in ruled:
        print(line)
    for code, n in sorted(rejected.items()):
        print(f"{n} records rejected, {code}")
    for kind in files:
        print(f"{kind}: {files[kind]} files, {cells[kind]} cells")
    print(f"{sum(files.values())} files, {sum(cells.values())} cells, {failed} differences")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
