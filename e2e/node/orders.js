const Tablestore = require('tablestore');

const client = new Tablestore.Client({
  endpoint: process.env.TABLESTORE_ENDPOINT, instancename: process.env.TABLESTORE_INSTANCE,
  accessKeyId: process.env.TABLESTORE_ACCESS_KEY_ID, secretAccessKey: process.env.TABLESTORE_ACCESS_KEY_SECRET,
});

(async () => {
  const tableName = 'orders', primaryKey = [{ id: Tablestore.Long.fromNumber(1) }];
  await client.createTable({
    tableMeta: { tableName, primaryKey: [{ name: 'id', type: Tablestore.PrimaryKeyType.INTEGER }] },
    tableOptions: { timeToLive: -1, maxVersions: 1 }, reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
  });
  const condition = new Tablestore.Condition(Tablestore.RowExistenceExpectation.IGNORE, null);
  await client.putRow({ tableName, condition, primaryKey, attributeColumns: [{ item: 'tea' }] });
  const { row } = await client.getRow({ tableName, primaryKey, maxVersions: 1 });
  console.log(row.attributes[0].columnValue);
})();
