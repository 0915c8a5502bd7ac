"""Loads a CSV file into a table with the official SDK for Python, as tsbench client runs its --baseline-cmd: BENCH_FILE, BENCH_TABLE
and BENCH_COLUMNS name the data, TABLESTORE_… the server. 200 rows per request, four threads."""

import csv
import os
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import islice

from tablestore import BatchWriteRowRequest, Condition, OTSClient, PutRowItem, Row, RowExistenceExpectation, TableInBatchWriteRowItem

BATCH_ROWS, THREADS = 200, 4
TABLE = os.environ["BENCH_TABLE"]
COLUMNS = [c.rsplit(":", 1) for c in os.environ["BENCH_COLUMNS"].split(",")]
NAMES = [name for name, _ in COLUMNS]
VALUES = [{"integer": int, "double": float, "string": str}[kind] for _, kind in COLUMNS]

client = OTSClient(os.environ["TABLESTORE_ENDPOINT"], os.environ["TABLESTORE_ACCESS_KEY_ID"], os.environ["TABLESTORE_ACCESS_KEY_SECRET"],
                   os.environ["TABLESTORE_INSTANCE"], max_connection=THREADS)


def send(records):
    ignore = Condition(RowExistenceExpectation.IGNORE)
    items = []
    for record in records:
        values = [(name, convert(text)) for name, convert, text in zip(NAMES, VALUES, record, strict=True)]
        items.append(PutRowItem(Row(values[:1], values[1:]), ignore))
    request = BatchWriteRowRequest()
    request.add(TableInBatchWriteRowItem(TABLE, items))
    if not client.batch_write_row(request).is_all_succeed():
        raise SystemExit("rows failed")


with open(os.environ["BENCH_FILE"], newline="", encoding="utf-8") as file, ThreadPoolExecutor(THREADS) as threads:
    records = csv.reader(file)
    next(records)  # the header
    running = set()
    while batch := list(islice(records, BATCH_ROWS)):
        if len(running) >= 2 * THREADS:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for f in done:
                f.result()
        running.add(threads.submit(send, batch))
    for f in running:
        f.result()
