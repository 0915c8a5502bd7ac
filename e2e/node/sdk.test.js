'use strict';
// Runs the official SDK for Node against the server that TABLESTORE_ENDPOINT, TABLESTORE_INSTANCE, TABLESTORE_ACCESS_KEY_ID
// and TABLESTORE_ACCESS_KEY_SECRET name. Every test creates its own table.

const { test } = require('node:test');
const assert = require('node:assert/strict');
const Tablestore = require('tablestore');

const { Long, Condition, SingleColumnCondition, CompositeCondition, ColumnPaginationFilter } = Tablestore;
const { RowExistenceExpectation: Row, ComparatorType: Is, LogicalOperator: Logic, ReturnType, Direction } = Tablestore;

function connect(change = {}) {
  return new Tablestore.Client({
    endpoint: process.env.TABLESTORE_ENDPOINT,
    instancename: process.env.TABLESTORE_INSTANCE,
    accessKeyId: process.env.TABLESTORE_ACCESS_KEY_ID,
    secretAccessKey: process.env.TABLESTORE_ACCESS_KEY_SECRET,
    maxRetries: 0,
    ...change,
  });
}

const client = connect();
const long = (text) => Long.fromString(String(text));
const ignore = () => new Condition(Row.IGNORE, null);

let tables = 0;

async function createTable(primaryKey, more = {}) {
  const tableName = `node_${process.pid}_${Date.now()}_${++tables}`;
  await client.createTable({
    tableMeta: { tableName, primaryKey, definedColumn: more.definedColumn },
    reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
    tableOptions: {
      timeToLive: more.timeToLive || -1, maxVersions: more.maxVersions || 1, maxTimeDeviation: more.maxTimeDeviation, allowUpdate: more.allowUpdate,
    },
    indexMetas: more.indexMetas,
  });
  return tableName;
}

const stringAndInteger = [{ name: 'id', type: 'STRING' }, { name: 'n', type: 'INTEGER' }];
const key = (id, n) => [{ id }, { n: long(n) }];

// plain converts a value for comparison: 64-bit integers become BigInt.
function plain(value) {
  if (value !== null && typeof value === 'object' && typeof value.toBuffer === 'function') return BigInt(value.toString());
  return value;
}

function values(row) {
  if (!row || !row.primaryKey) return null;
  return {
    key: Object.fromEntries(row.primaryKey.map((c) => [c.name, plain(c.value)])),
    columns: (row.attributes || []).map((c) => [c.columnName, plain(c.columnValue)]),
  };
}

const get = async (tableName, primaryKey, more = {}) => values((await client.getRow({ tableName, primaryKey, ...more })).row);
const columnsOf = async (...args) => {
  const row = await get(...args);
  return row && Object.fromEntries(row.columns);
};
const put = (tableName, primaryKey, attributeColumns, more = {}) =>
  client.putRow({ tableName, condition: ignore(), primaryKey, attributeColumns, ...more });
const update = (tableName, primaryKey, updateOfAttributeColumns, more = {}) =>
  client.updateRow({ tableName, condition: ignore(), primaryKey, updateOfAttributeColumns, ...more });

// refused expects a service error. In this SDK, its code is the HTTP status, and its message contains the body's text.
const refused = (promise, status, ...texts) => assert.rejects(promise, (err) => {
  assert.equal(err.code, status, err.message);
  for (const text of texts) assert.ok(err.message.includes(text), `${JSON.stringify(err.message)} has no ${text}`);
  return true;
});

const units = (answer) => [answer.consumed.capacityUnit.read, answer.consumed.capacityUnit.write];

test('a table is created, listed, described, updated and deleted', async () => {
  const name = await createTable(stringAndInteger, { definedColumn: [{ name: 'd', type: Tablestore.DefinedColumnType.DCT_STRING }] });
  assert.ok((await client.listTable()).tableNames.includes(name));
  const t = await client.describeTable({ tableName: name });
  assert.deepEqual(t.tableMeta.primaryKey.map((c) => [c.name, c.type]), [['id', 2], ['n', 1]]);
  assert.deepEqual(t.tableMeta.definedColumn.map((c) => [c.name, c.type]), [['d', 4]]);
  assert.equal(t.tableOptions.timeToLive, -1);
  assert.equal(t.tableOptions.maxVersions, 1);
  assert.ok(t.RequestId);
  const u = await client.updateTable({ tableName: name, tableOptions: { maxVersions: 3, maxTimeDeviation: 1000 } });
  assert.equal(u.tableOptions.maxVersions, 3);
  assert.equal(u.tableOptions.timeToLive, -1);
  assert.equal(Number(u.tableOptions.deviationCellVersionInSec), 1000);
  await refused(client.createTable({
    tableMeta: { tableName: name, primaryKey: stringAndInteger },
    reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
    tableOptions: { timeToLive: -1, maxVersions: 1 },
  }), 409, 'OTSObjectAlreadyExist', 'Requested table already exists.');
  await client.deleteTable({ tableName: name });
  assert.ok(!(await client.listTable()).tableNames.includes(name));
  await refused(client.describeTable({ tableName: name }), 404, 'OTSObjectNotExist');
});

test('values of every type come back as they were, also 64-bit integers, binaries and Chinese', async () => {
  const t = await createTable([{ name: 'id', type: 'STRING' }, { name: 'n', type: 'INTEGER' }, { name: 'b', type: 'BINARY' }]);
  const k = [{ id: '上海 🀄' }, { n: long('-9223372036854775808') }, { b: Buffer.from([0, 255, 128]) }];
  // Names are in ASCII: this SDK counts a name's characters instead of its bytes.
  const answer = await put(t, k, [
    { largest: long('9223372036854775807') }, { beyond: long('9007199254740993') }, { negative: long(-1) }, { double: 3.25 },
    { small: 5e-324 }, { yes: true }, { no: false }, { text: '你好,\n"世界" é' }, { empty: '' }, { bytes: Buffer.from([1, 0, 255]) },
  ]);
  assert.deepEqual(units(answer), [0, 1]);
  const row = await get(t, k);
  assert.deepEqual(row.key, { id: '上海 🀄', n: -9223372036854775808n, b: Buffer.from([0, 255, 128]) });
  assert.deepEqual(row.columns, [
    ['beyond', 9007199254740993n], ['bytes', Buffer.from([1, 0, 255])], ['double', 3.25], ['empty', ''], ['largest', 9223372036854775807n],
    ['negative', -1n], ['no', false], ['small', 5e-324], ['text', '你好,\n"世界" é'], ['yes', true],
  ]);
  assert.equal(await get(t, [{ id: 'none' }, { n: long(0) }, { b: Buffer.alloc(0) }]), null);
});

test('a put replaces the whole row, an update only the named columns, a delete removes the row', async () => {
  const t = await createTable(stringAndInteger);
  const k = key('a', 1);
  await put(t, k, [{ x: long(1) }, { y: 'old' }]);
  await put(t, k, [{ y: 'new' }, { z: true }]);
  assert.deepEqual(await columnsOf(t, k), { y: 'new', z: true });
  await update(t, k, [{ PUT: [{ x: long(7) }, { y: 'newer' }] }, { DELETE_ALL: ['z'] }]);
  assert.deepEqual(await columnsOf(t, k), { x: 7n, y: 'newer' });
  await client.deleteRow({ tableName: t, condition: ignore(), primaryKey: k });
  assert.equal(await get(t, k), null);
});

test('versions are kept, read newest first, and deleted one by one', async () => {
  const t = await createTable(stringAndInteger, { maxVersions: 3, maxTimeDeviation: 10 * 365 * 86400 });
  const k = key('a', 1);
  const at = 1700000000000;
  await put(t, k, [{ v: 'first', timestamp: at }, { v: 'second', timestamp: at + 1000 }, { w: 'other', timestamp: at }]);
  const all = (await client.getRow({ tableName: t, primaryKey: k, maxVersions: 3 })).row.attributes;
  assert.deepEqual(all.map((c) => [c.columnName, c.columnValue, Number(c.timestamp)]),
    [['v', 'second', at + 1000], ['v', 'first', at], ['w', 'other', at]]);
  assert.deepEqual(await columnsOf(t, k, { columnsToGet: ['v'] }), { v: 'second' });
  await update(t, k, [{ DELETE: [{ v: long(at + 1000) }] }]);
  assert.deepEqual(await columnsOf(t, k), { v: 'first', w: 'other' });
});

test('increments add up and the new value is returned', async () => {
  const t = await createTable(stringAndInteger);
  const k = key('counter', 1);
  const add = (by) => update(t, k, [{ INCREMENT: [{ hits: long(by) }] }],
    { returnContent: { returnType: ReturnType.AfterModify, returnColumns: ['hits'] } });
  assert.deepEqual(values((await add(5)).row).columns, [['hits', 5n]]);
  assert.deepEqual(values((await add('9007199254740993')).row).columns, [['hits', 9007199254740998n]]);
  assert.deepEqual(values((await add(-8)).row).columns, [['hits', 9007199254740990n]]);
  assert.deepEqual(await columnsOf(t, k), { hits: 9007199254740990n });
  await update(t, k, [{ PUT: [{ text: 'none' }] }]);
  await refused(update(t, k, [{ INCREMENT: [{ text: long(1) }] }]), 400, 'OTSParameterInvalid');
});

test('a write whose row condition does not hold fails and changes nothing', async () => {
  const t = await createTable(stringAndInteger);
  const k = key('a', 1);
  const only = (expectation) => ({ condition: new Condition(expectation, null) });
  await refused(put(t, k, [{ x: long(1) }], only(Row.EXPECT_EXIST)), 403, 'OTSConditionCheckFail', 'Condition check failed.');
  assert.deepEqual(units(await put(t, k, [{ x: long(1) }], only(Row.EXPECT_NOT_EXIST))), [1, 1]);
  await refused(put(t, k, [{ x: long(2) }], only(Row.EXPECT_NOT_EXIST)), 403, 'OTSConditionCheckFail');
  await refused(client.deleteRow({ tableName: t, primaryKey: key('b', 1), ...only(Row.EXPECT_EXIST) }), 403, 'OTSConditionCheckFail');
  assert.deepEqual(await columnsOf(t, k), { x: 1n });
});

test('a column condition is compared with the row before the write', async () => {
  const t = await createTable(stringAndInteger);
  const k = key('a', 1);
  await put(t, k, [{ version: long(1) }]);
  const swap = (from, to) => update(t, k, [{ PUT: [{ version: long(to) }] }],
    { condition: new Condition(Row.EXPECT_EXIST, new SingleColumnCondition('version', long(from), Is.EQUAL, false)) });
  await swap(1, 2);
  await refused(swap(1, 3), 403, 'OTSConditionCheckFail');
  assert.deepEqual(await columnsOf(t, k), { version: 2n });
  const both = new CompositeCondition(Logic.AND);
  both.addSubCondition(new SingleColumnCondition('version', long(2), Is.GREATER_EQUAL, false));
  both.addSubCondition(new SingleColumnCondition('absent', 'x', Is.EQUAL, true));
  await client.deleteRow({ tableName: t, primaryKey: k, condition: new Condition(Row.IGNORE, both) });
  assert.equal(await get(t, k), null);
});

test('a batch writes and reads, each row with its own answer', async () => {
  const [t, other] = [await createTable(stringAndInteger), await createTable([{ name: 'b', type: 'BINARY' }])];
  await put(t, key('old', 1), [{ x: long(1) }]);
  const written = await client.batchWriteRow({
    tables: [
      {
        tableName: t, rows: [
          { type: 'PUT', condition: ignore(), primaryKey: key('新', 1), attributeColumns: [{ x: '值' }], returnContent: { returnType: ReturnType.Primarykey } },
          { type: 'UPDATE', condition: new Condition(Row.EXPECT_EXIST, null), primaryKey: key('none', 1), attributeColumns: [{ PUT: [{ x: long(2) }] }] },
          { type: 'UPDATE', condition: ignore(), primaryKey: key('up', 2), attributeColumns: [{ PUT: [{ y: 2.5 }] }] },
          { type: 'DELETE', condition: ignore(), primaryKey: key('old', 1) },
        ],
      },
      { tableName: other, rows: [{ type: 'PUT', condition: ignore(), primaryKey: [{ b: Buffer.from('k') }], attributeColumns: [] }] },
    ],
  });
  assert.deepEqual(written.tables.map((r) => [r.tableName === t, r.isOk, r.errorCode]),
    [[true, true, null], [true, false, 'OTSConditionCheckFail'], [true, true, null], [true, true, null], [false, true, null]]);
  assert.deepEqual(values(written.tables[0]).key, { id: '新', n: 1n });
  const read = await client.batchGetRow({
    tables: [
      { tableName: t, primaryKey: [key('新', 1), key('old', 1), key('up', 2)] },
      { tableName: other, primaryKey: [[{ b: Buffer.from('k') }]] },
    ],
  });
  assert.deepEqual(read.tables[0].map((r) => values(r)), [
    { key: { id: '新', n: 1n }, columns: [['x', '值']] }, null, { key: { id: 'up', n: 2n }, columns: [['y', 2.5]] },
  ]);
  assert.deepEqual(read.tables[1].map((r) => values(r)), [{ key: { b: Buffer.from('k') }, columns: [] }]);
  await refused(client.batchWriteRow({
    tables: [{ tableName: t, rows: Array.from({ length: 201 }, (_, i) => ({ type: 'PUT', condition: ignore(), primaryKey: key('r', i), attributeColumns: [] })) }],
  }), 400, 'OTSParameterInvalid', 'Rows count exceeds the upper limit: 200.');
});

// range reads all pages of two rows each.
async function range(tableName, more) {
  const rows = [];
  let pages = 0;
  let start = more.inclusiveStartPrimaryKey;
  for (;;) {
    const page = await client.getRange({ tableName, limit: 2, ...more, inclusiveStartPrimaryKey: start });
    assert.ok(page.consumed.capacityUnit.read >= 1);
    rows.push(...page.rows.map((r) => values(r)));
    pages++;
    if (!page.nextStartPrimaryKey) return { rows, pages };
    start = page.nextStartPrimaryKey.map((c) => ({ [c.name]: c.value }));
  }
}

const lowest = [{ id: Tablestore.INF_MIN }, { n: Tablestore.INF_MIN }];
const highest = [{ id: Tablestore.INF_MAX }, { n: Tablestore.INF_MAX }];
const upward = { direction: Direction.FORWARD, inclusiveStartPrimaryKey: lowest, exclusiveEndPrimaryKey: highest };
const downward = { direction: Direction.BACKWARD, inclusiveStartPrimaryKey: highest, exclusiveEndPrimaryKey: lowest };

async function sixRows() {
  const t = await createTable(stringAndInteger);
  for (const [id, n] of [['a', -1], ['a', 0], ['a', '9007199254740993'], ['b', 2], ['甲', 3], ['甲', 4]]) {
    await put(t, key(id, n), [{ age: long(n) }, { city: id === '甲' ? '上海' : 'Paris' }]);
  }
  return t;
}

test('a range is read page by page in both directions', async () => {
  const t = await sixRows();
  const want = ['a -1', 'a 0', 'a 9007199254740993', 'b 2', '甲 3', '甲 4'];
  const names = (r) => r.rows.map((row) => `${row.key.id} ${row.key.n}`);
  const up = await range(t, upward);
  assert.deepEqual(names(up), want);
  assert.ok(up.pages >= 3);
  assert.deepEqual(names(await range(t, downward)), want.toReversed ? want.toReversed() : [...want].reverse());
  const part = { direction: Direction.FORWARD, inclusiveStartPrimaryKey: key('a', 0), exclusiveEndPrimaryKey: [{ id: '甲' }, { n: long(4) }] };
  assert.deepEqual(names(await range(t, part)), want.slice(1, 5));
  await refused(client.getRange({ tableName: t, ...upward, inclusiveStartPrimaryKey: highest, exclusiveEndPrimaryKey: lowest }), 400,
    'Begin key must less than end key in FORWARD');
});

test('a filter leaves out rows in both directions', async () => {
  const t = await sixRows();
  const shanghai = new SingleColumnCondition('city', '上海', Is.EQUAL, false);
  const ids = (r) => r.rows.map((row) => Number(row.columns.find(([name]) => name === 'age')[1]));
  assert.deepEqual(ids(await range(t, { ...upward, columnFilter: shanghai })), [3, 4]);
  assert.deepEqual(ids(await range(t, { ...downward, columnFilter: shanghai })), [4, 3]);
  const middle = new CompositeCondition(Logic.AND);
  middle.addSubCondition(new SingleColumnCondition('age', long(0), Is.GREATER_EQUAL, false));
  middle.addSubCondition(new SingleColumnCondition('age', long(4), Is.LESS_THAN, false));
  assert.deepEqual(ids(await range(t, { ...upward, columnFilter: middle })), [0, 2, 3]);
  const neither = new CompositeCondition(Logic.NOT);
  neither.addSubCondition(middle);
  assert.deepEqual(ids(await range(t, { ...downward, columnFilter: neither })), [4, Number('9007199254740993'), -1]);
  const either = new CompositeCondition(Logic.OR);
  either.addSubCondition(shanghai);
  either.addSubCondition(new SingleColumnCondition('age', long(-1), Is.LESS_EQUAL, false));
  assert.deepEqual(ids(await range(t, { ...upward, columnFilter: either })), [-1, 3, 4]);
  assert.deepEqual((await range(t, { ...upward, columnFilter: new SingleColumnCondition('absent', 'x', Is.NOT_EQUAL, true) })).rows.length, 6);
  assert.deepEqual((await range(t, { ...upward, columnFilter: new SingleColumnCondition('absent', 'x', Is.NOT_EQUAL, false) })).rows.length, 0);
  assert.equal(await get(t, key('b', 2), { columnFilter: shanghai }), null);
  const batch = await client.batchGetRow({ tables: [{ tableName: t, primaryKey: [key('b', 2), key('甲', 3)], columnFilter: shanghai }] });
  assert.deepEqual(batch.tables[0].map((r) => values(r) !== null), [false, true]);
});

test('a row is read column by column', async () => {
  const t = await createTable(stringAndInteger);
  const k = key('wide', 1);
  await put(t, k, Array.from({ length: 9 }, (_, i) => ({ ['c' + i]: long(i) })));
  assert.deepEqual(Object.keys(await columnsOf(t, k, { columnFilter: new ColumnPaginationFilter(3, 2) })), ['c2', 'c3', 'c4']);
  assert.deepEqual(Object.keys(await columnsOf(t, k, { startColumn: 'c3', endColumn: 'c6' })), ['c3', 'c4', 'c5']);
  assert.deepEqual(Object.keys(await columnsOf(t, k, { columnsToGet: ['c8', 'c0', 'none'] })), ['c0', 'c8']);
});

test('an auto-increment column is numbered, and its keys are returned', async () => {
  const t = await createTable([{ name: 'id', type: 'STRING' }, { name: 'seq', type: 'INTEGER', option: 'AUTO_INCREMENT' }]);
  assert.equal((await client.describeTable({ tableName: t })).tableMeta.primaryKey[1].option, Tablestore.PrimaryKeyOption.AUTO_INCREMENT);
  const auto = () => [{ id: 'user' }, { seq: Tablestore.PK_AUTO_INCR }];
  const returned = { returnContent: { returnType: ReturnType.Primarykey } };
  const numbers = [];
  for (let i = 0; i < 3; i++) {
    const answer = await put(t, auto(), [{ text: `第${i}条` }], returned);
    assert.deepEqual(units(answer), [0, 1]);
    numbers.push(values(answer.row).key.seq);
  }
  const batch = await client.batchWriteRow({
    tables: [{ tableName: t, rows: [0, 1].map((i) => ({ type: 'PUT', condition: ignore(), primaryKey: auto(), attributeColumns: [{ text: `b${i}` }], ...returned })) }],
  });
  for (const r of batch.tables) {
    assert.ok(r.isOk, r.errorMessage);
    numbers.push(values(r).key.seq);
  }
  for (let i = 1; i < numbers.length; i++) assert.ok(numbers[i] > numbers[i - 1], numbers.join());
  const rows = (await client.getRange({
    tableName: t, direction: Direction.FORWARD,
    inclusiveStartPrimaryKey: [{ id: 'user' }, { seq: Tablestore.INF_MIN }], exclusiveEndPrimaryKey: [{ id: 'user' }, { seq: Tablestore.INF_MAX }],
  })).rows.map((r) => values(r));
  assert.deepEqual(rows.map((r) => r.key.seq), numbers);
  assert.deepEqual(rows.map((r) => r.columns[0][1]), ['第0条', '第1条', '第2条', 'b0', 'b1']);
  const exact = [{ id: 'user' }, { seq: long(numbers[0]) }];
  await refused(put(t, exact, [{ text: 'x' }]), 400, 'OTSParameterInvalid');
  await put(t, exact, [{ text: 'changed' }], { condition: new Condition(Row.EXPECT_EXIST, null) });
  assert.deepEqual(await columnsOf(t, exact), { text: 'changed' });
});

test('wrong credentials have different errors', async () => {
  await refused(connect({ secretAccessKey: 'wrong' }).listTable(), 403, 'OTSAuthFailed', 'Signature mismatch.');
  await refused(connect({ accessKeyId: 'nobody' }).listTable(), 403, 'OTSAuthFailed', 'The AccessKeyID does not exist.');
  await refused(connect({ instancename: 'nowhere' }).listTable(), 403, 'OTSAuthFailed', 'The instance is not found.');
});

// indexRows reads all rows of an index, as key and columns.
async function indexRows(tableName, names) {
  const bound = (value) => names.map((name) => ({ [name]: value }));
  const page = await client.getRange({
    tableName, direction: Direction.FORWARD,
    inclusiveStartPrimaryKey: bound(Tablestore.INF_MIN), exclusiveEndPrimaryKey: bound(Tablestore.INF_MAX),
  });
  return page.rows.map((r) => [Object.values(values(r).key), values(r).columns]);
}

test('indexes are created with their table and later, follow it, and are dropped', async () => {
  const first = `node_${process.pid}_${Date.now()}_first`;
  const definedColumn = [
    { name: 'city', type: Tablestore.DefinedColumnType.DCT_STRING }, { name: 'age', type: Tablestore.DefinedColumnType.DCT_INTEGER },
  ];
  const t = await createTable(stringAndInteger, { definedColumn, indexMetas: [{ name: first, primaryKey: ['city'], definedColumn: ['age'] }] });
  const described = async () => (await client.describeTable({ tableName: t })).indexMetas.map((x) => [x.name, x.primaryKey, x.definedColumn, x.indexSyncPhase]);
  assert.deepEqual(await described(), [[first, ['city'], ['age'], Tablestore.SyncPhase.INCR]]);
  await put(t, key('a', 1), [{ city: '上海' }, { age: long(30) }, { other: true }]);
  await put(t, key('b', 2), [{ city: 'Paris' }]);
  await put(t, key('c', 3), [{ age: long(50) }]);
  const ofFirst = () => indexRows(first, ['city', 'id', 'n']);
  assert.deepEqual(await ofFirst(), [[['Paris', 'b', 2n], []], [['上海', 'a', 1n], [['age', 30n]]]]);
  assert.deepEqual(await columnsOf(first, [{ city: '上海' }, { id: 'a' }, { n: long(1) }]), { age: 30n });

  const [full, empty] = [`${first}_full`, `${first}_empty`];
  await client.createIndex({ mainTableName: t, includeBaseData: true, indexMeta: { name: full, primaryKey: ['age', 'n'], definedColumn: [] } });
  await client.createIndex({ mainTableName: t, includeBaseData: false, indexMeta: { name: empty, primaryKey: ['age'], definedColumn: ['city'] } });
  assert.deepEqual((await described()).length, 3);
  await update(t, key('c', 3), [{ PUT: [{ city: 'Rome' }] }]);
  await update(t, key('a', 1), [{ DELETE_ALL: ['city'] }]);
  await client.deleteRow({ tableName: t, condition: ignore(), primaryKey: key('b', 2) });
  assert.deepEqual(await ofFirst(), [[['Rome', 'c', 3n], [['age', 50n]]]]);
  assert.deepEqual(await indexRows(full, ['age', 'n', 'id']), [[[30n, 1n, 'a'], []], [[50n, 3n, 'c'], []]]);
  assert.deepEqual((await indexRows(empty, ['age', 'id', 'n'])).map(([k]) => k[1]), ['a', 'c']); // both were written later

  await refused(put(full, [{ age: long(1) }, { n: long(1) }, { id: 'a' }], []), 400, 'OTSParameterInvalid', "Can't write index table directly.");
  const local = `${first}_local`;
  const createLocal = (primaryKey) => client.createIndex({
    mainTableName: t, includeBaseData: true, indexMeta: { name: local, primaryKey, definedColumn: [], indexType: Tablestore.IndexType.IT_LOCAL_INDEX },
  });
  await refused(createLocal(['city', 'id']), 400, 'OTSParameterInvalid');
  await createLocal(['id', 'city']);
  assert.deepEqual(await indexRows(local, ['id', 'city', 'n']), [[['c', 'Rome', 3n], []]]); // row a has lost its city
  await client.dropIndex({ mainTableName: t, indexName: first });
  await refused(client.describeTable({ tableName: first }), 404, 'OTSObjectNotExist');
  await refused(client.dropIndex({ mainTableName: t, indexName: first }), 404, 'OTSObjectNotExist', 'Requested index does not exist.');
  await client.deleteTable({ tableName: t });
  await refused(client.describeTable({ tableName: full }), 404, 'OTSObjectNotExist');
});

test('a table may reject updates until it allows them', async () => {
  const t = await createTable(stringAndInteger, { allowUpdate: false });
  const k = key('a', 1);
  assert.equal((await client.describeTable({ tableName: t })).tableOptions.allowUpdate, false);
  await put(t, k, [{ x: long(1) }]);
  await refused(update(t, k, [{ PUT: [{ x: long(2) }] }]), 400, 'OTSParameterInvalid', 'Update operation is not allowed in this table');
  assert.equal((await client.updateTable({ tableName: t, tableOptions: { allowUpdate: true } })).tableOptions.allowUpdate, true);
  await update(t, k, [{ PUT: [{ x: long(2) }] }]);
  assert.deepEqual(await columnsOf(t, k), { x: 2n });
});

test('lists without elements are empty', async () => {
  const t = await createTable(stringAndInteger);
  assert.deepEqual((await client.listSearchIndex({ tableName: t })).indices, []);
});

test('only the transaction itself sees its writes until it is committed', async () => {
  const t = await createTable(stringAndInteger);
  const k = key('a', 1);
  const condition = ignore();
  await put(t, k, [{ x: long(1) }]);
  const partition = { tableName: t, primaryKey: [{ id: 'a' }] };
  for (const [end, left] of [['abortTransaction', { x: 1n }], ['commitTransaction', { x: 3n }]]) {
    const { transactionId } = await client.startLocalTransaction(partition);
    await refused(client.startLocalTransaction(partition), 409, 'OTSRowOperationConflict', 'Data is being modified');
    await refused(put(t, k, [{ x: long(9) }]), 409, 'OTSRowOperationConflict', 'Data is being modified');
    await client.putRow({ tableName: t, condition, primaryKey: k, attributeColumns: [{ x: long(2) }], transactionId });
    await client.updateRow({ tableName: t, condition, primaryKey: k, updateOfAttributeColumns: [{ PUT: [{ x: long(3) }] }], transactionId });
    assert.deepEqual(await columnsOf(t, k, { transactionId }), { x: 3n });
    assert.deepEqual(await columnsOf(t, k), { x: 1n });
    // The SDK parses the empty answer to an abort as a request without its id.
    if (end === 'abortTransaction') await assert.rejects(client[end]({ transactionId }), /missing required 'transactionId'/);
    else await client[end]({ transactionId });
    await refused(client[end]({ transactionId }), 404, 'OTSSessionNotExist', 'Session not exist');
    assert.deepEqual(await columnsOf(t, k), left);
  }
});

test('operations that the engine does not have are rejected by name, with an alternative', async () => {
  await refused(client.sqlQuery({ query: 'select 1' }), 400, 'OTSUnsupportedOperation', 'SQLQuery', 'GetRange');
  await refused(client.deleteSearchIndex({ tableName: 't', indexName: 'i' }), 400, 'OTSUnsupportedOperation', 'DeleteSearchIndex', 'secondary index');
});

// engine calls the engine's own API, which requires the server's key.
async function engine(what, body) {
  const user = `${process.env.TABLESTORE_ACCESS_KEY_ID}:${process.env.TABLESTORE_ACCESS_KEY_SECRET}`;
  const answer = await fetch(`${process.env.TABLESTORE_ENDPOINT}/_engine/${what}`, {
    method: 'POST', body, headers: { Authorization: `Basic ${Buffer.from(user).toString('base64')}` },
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

// This test is last, because it moves the clock of all tables and then deletes them.
test('data expires when the clock is moved, and a reset deletes everything', async () => {
  const t = await createTable(stringAndInteger, { timeToLive: 86400 });
  const k = key('a', 1);
  await put(t, k, [{ x: long(1) }]);
  await engine('clock', '{"advance": "23h"}');
  assert.deepEqual(await columnsOf(t, k), { x: 1n });
  await put(t, key('b', 1), [{ x: long(2) }]);
  await engine('clock', '{"advance": "2h"}');
  assert.equal(await get(t, k), null);
  assert.deepEqual(await columnsOf(t, key('b', 1)), { x: 2n });
  assert.ok((await engine('reset')).tables > 0);
  assert.deepEqual((await client.listTable()).tableNames, []);
});
