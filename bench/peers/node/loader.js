'use strict';
// Loads a CSV file into a table with the official SDK for Node, as tsbench client runs its --baseline-cmd: BENCH_FILE, BENCH_TABLE and
// BENCH_COLUMNS name the data, TABLESTORE_… the server. It sends 200 rows per request, 8 at once. Fields lack quotes.

const fs = require('node:fs');
const readline = require('node:readline');
const Tablestore = require('tablestore');

const { Condition, Long, RowExistenceExpectation } = Tablestore;
const batchRows = 200;
const inFlight = 8;
const tableName = process.env.BENCH_TABLE;
const columns = process.env.BENCH_COLUMNS.split(',').map((c) => {
  const colon = c.lastIndexOf(':');
  return { name: c.slice(0, colon), type: c.slice(colon + 1) };
});

const client = new Tablestore.Client({
  endpoint: process.env.TABLESTORE_ENDPOINT,
  instancename: process.env.TABLESTORE_INSTANCE,
  accessKeyId: process.env.TABLESTORE_ACCESS_KEY_ID,
  secretAccessKey: process.env.TABLESTORE_ACCESS_KEY_SECRET,
  maxRetries: 0,
});

function value(type, text) {
  switch (type) {
    case 'integer': return Long.fromString(text);
    case 'double': return Number(text);
    default: return text;
  }
}

function row(line) {
  const fields = line.split(',');
  if (fields.length !== columns.length) throw new Error(`${fields.length} fields: ${line}`);
  const cells = fields.map((text, i) => ({ [columns[i].name]: value(columns[i].type, text) }));
  return {
    type: 'PUT',
    condition: new Condition(RowExistenceExpectation.IGNORE, null),
    primaryKey: cells.slice(0, 1),
    attributeColumns: cells.slice(1),
  };
}

async function send(rows) {
  const answer = await client.batchWriteRow({ tables: [{ tableName, rows }] });
  if (answer.tables.length !== rows.length || answer.tables.some((t) => !t.isOk)) throw new Error('rows failed');
}

async function main() {
  const lines = readline.createInterface({ input: fs.createReadStream(process.env.BENCH_FILE), crlfDelay: Infinity });
  const running = new Set();
  let rows = [];
  let names = true;
  const start = async () => {
    while (running.size >= inFlight) await Promise.race(running);
    const sent = send(rows).finally(() => running.delete(sent));
    running.add(sent);
    rows = [];
  };
  for await (const line of lines) {
    if (names) { names = false; continue; }
    rows.push(row(line));
    if (rows.length === batchRows) await start();
  }
  if (rows.length > 0) await start();
  await Promise.all(running);
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
