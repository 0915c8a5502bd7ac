import com.alicloud.openservices.tablestore.DefaultTableStoreWriter;
import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.TableStoreCallback;
import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.core.auth.DefaultCredentials;
import com.alicloud.openservices.tablestore.model.*;
import com.alicloud.openservices.tablestore.model.filter.SingleColumnValueFilter;
import com.alicloud.openservices.tablestore.model.tunnel.BulkExportQueryCriteria;
import com.alicloud.openservices.tablestore.writer.RowWriteResult;
import com.alicloud.openservices.tablestore.writer.WriterConfig;
import com.alicloud.openservices.tablestore.writer.enums.BatchRequestType;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Runs the official SDK for Java against the server that TABLESTORE_ENDPOINT, TABLESTORE_INSTANCE, TABLESTORE_ACCESS_KEY_ID and
 * TABLESTORE_ACCESS_KEY_SECRET name: its writer in both modes, bulk requests in both encodings, table options, indexes, empty lists.
 */
public class SdkCheck {
    static final String ENDPOINT = System.getenv("TABLESTORE_ENDPOINT"), INSTANCE = System.getenv("TABLESTORE_INSTANCE");
    static final String ID = System.getenv("TABLESTORE_ACCESS_KEY_ID"), SECRET = System.getenv("TABLESTORE_ACCESS_KEY_SECRET");
    static final int ROWS = 5000;

    static void want(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static PrimaryKey key(long n) {
        return PrimaryKeyBuilder.createPrimaryKeyBuilder().addPrimaryKeyColumn("id", PrimaryKeyValue.fromString("row " + n % 100))
                .addPrimaryKeyColumn("n", PrimaryKeyValue.fromLong(n)).build();
    }

    static PrimaryKey bound(PrimaryKeyValue v) {
        return PrimaryKeyBuilder.createPrimaryKeyBuilder().addPrimaryKeyColumn("id", v).addPrimaryKeyColumn("n", v).build();
    }

    static RowPutChange row(String table, long n) {
        RowPutChange p = new RowPutChange(table, key(n));
        p.addColumn("text", ColumnValue.fromString("text é " + n));
        p.addColumn("whole", ColumnValue.fromLong(-n));
        p.addColumn("real", ColumnValue.fromDouble(n / 3.0));
        p.addColumn("flag", ColumnValue.fromBoolean(n % 2 == 0));
        if (n % 3 == 0) {
            p.addColumn("bytes", ColumnValue.fromBinary(new byte[] {0, (byte) n, -1}));
        }
        return p;
    }

    static void check(Row r, long n, String how) {
        RowPutChange want = row("t", n);
        want(r != null, how + ": row " + n + " is missing");
        want(r.getPrimaryKey().equals(want.getPrimaryKey()), how + ": " + r.getPrimaryKey());
        TreeMap<String, ColumnValue> got = values(r.getPrimaryKey(), Arrays.asList(r.getColumns()));
        TreeMap<String, ColumnValue> all = values(want.getPrimaryKey(), want.getColumnsToPut());
        want(got.equals(all), how + ": " + got + " is not " + all);
    }

    static TreeMap<String, ColumnValue> values(PrimaryKey key, List<Column> columns) {
        TreeMap<String, ColumnValue> values = new TreeMap<>();
        for (PrimaryKeyColumn k : key.getPrimaryKeyColumns()) {
            try {
                values.put(k.getName(), k.getValue().toColumnValue());
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
        for (Column c : columns) {
            values.put(c.getName(), c.getValue());
        }
        return values;
    }

    static void create(SyncClient c, String table, TableOptions options) {
        TableMeta meta = new TableMeta(table);
        meta.addPrimaryKeyColumn("id", PrimaryKeyType.STRING);
        meta.addPrimaryKeyColumn("n", PrimaryKeyType.INTEGER);
        c.createTable(new CreateTableRequest(meta, options, new ReservedThroughput(0, 0)));
    }

    static void writer(SyncClient c, String table, BatchRequestType mode) throws Exception {
        create(c, table, new TableOptions(-1, 1));
        WriterConfig config = new WriterConfig();
        config.setBatchRequestType(mode);
        config.setBucketCount(2);
        AtomicLong failed = new AtomicLong();
        CountDownLatch answered = new CountDownLatch(ROWS); // callbacks may run after close
        DefaultTableStoreWriter w = new DefaultTableStoreWriter(ENDPOINT, new DefaultCredentials(ID, SECRET), INSTANCE, table, config,
                new TableStoreCallback<RowChange, RowWriteResult>() {
                    public void onCompleted(RowChange change, RowWriteResult result) {
                        answered.countDown();
                    }

                    public void onFailed(RowChange change, Exception e) {
                        failed.incrementAndGet();
                        answered.countDown();
                    }
                });
        for (long n = 0; n < ROWS; n++) {
            w.addRowChange(row(table, n));
        }
        w.flush();
        w.close();
        want(answered.await(2, TimeUnit.MINUTES) && failed.get() == 0, mode + ": " + answered.getCount() + " rows unanswered, " + failed + " failed");
        RangeRowQueryCriteria range = new RangeRowQueryCriteria(table);
        range.setInclusiveStartPrimaryKey(bound(PrimaryKeyValue.INF_MIN));
        range.setExclusiveEndPrimaryKey(bound(PrimaryKeyValue.INF_MAX));
        range.setMaxVersions(1);
        long rows = 0;
        for (PrimaryKey next = range.getInclusiveStartPrimaryKey(); next != null;) {
            range.setInclusiveStartPrimaryKey(next);
            GetRangeResponse page = c.getRange(new GetRangeRequest(range));
            for (Row r : page.getRows()) {
                check(r, r.getPrimaryKey().getPrimaryKeyColumn("n").getValue().asLong(), "writer, " + mode);
                rows++;
            }
            next = page.getNextStartPrimaryKey();
        }
        want(rows == ROWS, mode + ": " + rows + " rows in the table");
    }

    static void bulk(SyncClient c, String table) {
        BulkImportRequest in = new BulkImportRequest(table);
        for (long n = ROWS; n < ROWS + 199; n++) {
            in.addRowChange(row(table, n));
        }
        RowUpdateChange u = new RowUpdateChange(table, key(1));
        u.put("text", ColumnValue.fromString("updated"));
        in.addRowChange(u);
        BulkImportResponse out = c.bulkImport(in);
        want(out.getRowResults().size() == 200 && out.isAllSucceed(), "BulkImport: " + out.getFailedRows());
        CapacityDataSize size = out.getRowResults().get(0).getConsumedCapacity().getCapacityDataSize();
        want(size != null && size.getWriteCapacityDataSize() > 0, "BulkImport returns no size: " + size);
        in.addRowChange(row(table, 1));
        try {
            c.bulkImport(in);
            want(false, "201 rows were accepted");
        } catch (TableStoreException e) {
            want(e.getErrorCode().equals("OTSParameterInvalid"), e.toString());
        }
        BulkImportRequest elsewhere = new BulkImportRequest("not_there");
        elsewhere.addRowChange(row("not_there", 1));
        BulkImportResponse missing = c.bulkImport(elsewhere);
        want(missing.getFailedRows().size() == 1 && missing.getFailedRows().get(0).getError().getCode().equals("OTSObjectNotExist"), "a missing table");

        c.deleteRow(new DeleteRowRequest(new RowDeleteChange(table, key(1))));
        for (DataBlockType type : DataBlockType.values()) {
            BulkExportQueryCriteria q = new BulkExportQueryCriteria(table);
            q.setInclusiveStartPrimaryKey(bound(PrimaryKeyValue.INF_MIN));
            q.setExclusiveEndPrimaryKey(bound(PrimaryKeyValue.INF_MAX));
            q.addColumnsToGet(Arrays.asList("id", "n", "text", "whole", "real", "flag", "bytes"));
            q.setDataBlockType(type);
            BulkExportResponse first = c.bulkExport(new BulkExportRequest(q));
            want(first.getDataBlockType() == type, "asked for " + type + ", got " + first.getDataBlockType());
        }
        RangeIteratorParameter p = new RangeIteratorParameter(table);
        p.setInclusiveStartPrimaryKey(bound(PrimaryKeyValue.INF_MIN));
        p.setExclusiveEndPrimaryKey(bound(PrimaryKeyValue.INF_MAX));
        p.addColumnsToGet(Arrays.asList("id", "n", "text", "whole", "real", "flag", "bytes"));
        long rows = 0;
        for (Iterator<Row> it = c.createBulkExportIterator(p); it.hasNext(); rows++) {
            Row r = it.next();
            // The SDK requests columns in the order of a HashSet. In a matrix, key columns need not be first.
            TreeMap<String, ColumnValue> got = values(r.getPrimaryKey(), Arrays.asList(r.getColumns()));
            RowPutChange put = row(table, got.get("n").asLong());
            want(got.equals(values(put.getPrimaryKey(), put.getColumnsToPut())), "BulkExport: " + got);
        }
        want(rows == ROWS + 198, "BulkExport: " + rows + " rows");
        p.setFilter(new SingleColumnValueFilter("whole", SingleColumnValueFilter.CompareOperator.GREATER_THAN, ColumnValue.fromLong(-11)));
        rows = 0;
        for (Iterator<Row> it = c.createBulkExportIterator(p); it.hasNext(); it.next()) {
            rows++;
        }
        want(rows == 10, "BulkExport with a filter: " + rows + " rows"); // 0 to 10 without 1
    }

    interface Call {
        void call();
    }

    static void refused(String code, String message, Call call) {
        try {
            call.call();
        } catch (TableStoreException e) {
            want(e.getErrorCode().equals(code) && e.getMessage().equals(message), e.getErrorCode() + " " + e.getMessage() + ", want " + code + " " + message);
            return;
        }
        want(false, "not rejected: " + message);
    }

    /** What the SDK's own suite asserts of BulkImport: bytes and units of each kind of change, and rejected requests. */
    static void bulkAnswers(SyncClient c, String table) {
        TableMeta meta = new TableMeta(table);
        meta.addPrimaryKeyColumn("id", PrimaryKeyType.STRING);
        meta.addPrimaryKeyColumn("n", PrimaryKeyType.INTEGER);
        meta.addDefinedColumn("whole", DefinedColumnType.INTEGER);
        c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0)));
        refused("OTSParameterInvalid", "No operation is specified for table: '" + table + "'.", () -> c.bulkImport(new BulkImportRequest(table)));
        BulkImportRequest in = new BulkImportRequest(table);
        RowPutChange put = new RowPutChange(table, key(1)); // id, row 1, n and the number: 16 bytes
        put.addColumn(new Column("text", ColumnValue.fromString("four"), System.currentTimeMillis()));
        RowUpdateChange update = new RowUpdateChange(table, key(2));
        update.put("whole", ColumnValue.fromLong(2));
        in.addRowChange(put);
        in.addRowChange(update);
        in.addRowChange(new RowDeleteChange(table, key(3)));
        long[] bytes = {16 + 8, 16 + 13, 16}; // a timestamp does not count
        for (BulkImportResponse.RowResult r : c.bulkImport(in).getRowResults()) {
            CapacityUnit units = r.getConsumedCapacity().getCapacityUnit();
            CapacityDataSize size = r.getConsumedCapacity().getCapacityDataSize();
            want(r.isSucceed() && units.getReadCapacityUnit() == 0 && units.getWriteCapacityUnit() == 0, "BulkImport, row " + r.getIndex() + ": " + units);
            want(size.getReadCapacityDataSize() == 0 && size.getWriteCapacityDataSize() == bytes[r.getIndex()], "BulkImport, row " + r.getIndex() + ": " + size.getWriteCapacityDataSize() + " bytes");
        }
        BulkImportRequest wrong = new BulkImportRequest(table);
        RowPutChange type = new RowPutChange(table, key(4));
        type.addColumn("whole", ColumnValue.fromBinary(new byte[1]));
        wrong.addRowChange(type);
        wrong.addRowChange(new RowDeleteChange(table, bound(PrimaryKeyValue.fromString("x"))));
        java.util.List<BulkImportResponse.RowResult> failed = c.bulkImport(wrong).getFailedRows();
        String[] why = {"Invalid column type for column whole expect VT_INTEGER actual VT_BLOB", "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER."};
        for (int i = 0; i < 2; i++) {
            want(failed.get(i).getError().getMessage().equals(why[i]), failed.get(i).getError().getMessage());
        }
    }

    /** What the SDK's own suite asserts of the limits on indexes and their columns. */
    static void indexNumbers(SyncClient c, String table) {
        TableMeta meta = new TableMeta(table);
        meta.addPrimaryKeyColumn("id", PrimaryKeyType.STRING);
        for (int i = 0; i < 32; i++) {
            meta.addDefinedColumn("d" + i, DefinedColumnType.STRING);
        }
        IndexMeta five = new IndexMeta(table + "_five"), many = new IndexMeta(table + "_many"), wide = new IndexMeta(table + "_wide");
        wide.addPrimaryKeyColumn("d0");
        for (int i = 0; i < 33; i++) {
            (i < 5 ? five : many).addPrimaryKeyColumn("d" + i);
            wide.addDefinedColumn("d" + i);
        }
        String keys = "The number of primary key columns must be in range: [1, 4] in index.";
        for (IndexMeta m : new IndexMeta[] {five, many}) { // these are checked before the table is looked up
            refused("OTSParameterInvalid", keys, () -> c.createIndex(new CreateIndexRequest(table, m, false)));
            refused("OTSParameterInvalid", keys, () -> c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0), Collections.singletonList(m))));
        }
        IndexMeta empty = new IndexMeta(table + "_empty");
        empty.addDefinedColumn("d0");
        refused("OTSParameterInvalid", keys, () -> c.createIndex(new CreateIndexRequest(table, empty, false)));
        refused("OTSParameterInvalid", "The number of attribute columns must be in range: [0, 32] in index.",
                () -> c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0), Collections.singletonList(wide))));
        java.util.List<IndexMeta> six = new java.util.ArrayList<>();
        for (int i = 0; i < 6; i++) {
            IndexMeta m = new IndexMeta(table + "_" + i);
            m.addPrimaryKeyColumn("d" + i);
            six.add(m);
        }
        String quota = "Number of index per table exceeds the quota:5.";
        refused("OTSParameterInvalid", quota, () -> c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0), six)));
        c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0), six.subList(0, 4)));
        c.createIndex(new CreateIndexRequest(table, six.get(4), false));
        refused("OTSParameterInvalid", quota, () -> c.createIndex(new CreateIndexRequest(table, six.get(5), false)));
        c.deleteTable(new DeleteTableRequest(table));
        meta.addDefinedColumn("d32", DefinedColumnType.STRING);
        refused("OTSParameterInvalid", "The number of defined columns must be in range: [0, 32].", () -> c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0))));
    }

    static void options(SyncClient c, String table) {
        TableOptions o = new TableOptions(86400, 3, 3600);
        o.setAllowUpdate(false);
        create(c, table, o);
        TableOptions got = c.describeTable(new DescribeTableRequest(table)).getTableOptions();
        want(got.getTimeToLive() == 86400 && got.getMaxVersions() == 3 && got.getMaxTimeDeviation() == 3600 && !got.getAllowUpdate() && !got.getUpdateFullRow(),
                "options: " + got);
        RowUpdateChange u = new RowUpdateChange(table, key(1));
        u.put("text", ColumnValue.fromString("x"));
        try {
            c.updateRow(new UpdateRowRequest(u));
            want(false, "an update was accepted");
        } catch (TableStoreException e) {
            want(e.getMessage().equals("Update operation is not allowed in this table"), e.toString());
        }
        UpdateTableRequest allow = new UpdateTableRequest(table);
        TableOptions yes = new TableOptions();
        yes.setAllowUpdate(true);
        allow.setTableOptionsForUpdate(yes);
        want(c.updateTable(allow).getTableOptions().getAllowUpdate(), "updates are not allowed");
        c.updateRow(new UpdateRowRequest(u));
        RowPutChange old = new RowPutChange(table, key(2));
        old.addColumn(new Column("c", ColumnValue.fromLong(1), System.currentTimeMillis() - 2 * 3600 * 1000L));
        try {
            c.putRow(new PutRowRequest(old));
            want(false, "an old cell was accepted");
        } catch (TableStoreException e) {
            want(e.getMessage().startsWith("Invalid timestamp. Cell:c. Timestamp:"), e.toString());
        }
    }

    static void indexes(SyncClient c, String table) {
        TableMeta meta = new TableMeta(table);
        meta.addPrimaryKeyColumn("id", PrimaryKeyType.STRING);
        meta.addPrimaryKeyColumn("n", PrimaryKeyType.INTEGER);
        meta.addDefinedColumn("whole", DefinedColumnType.INTEGER);
        meta.addDefinedColumn("text", DefinedColumnType.STRING);
        IndexMeta first = new IndexMeta(table + "_first");
        first.addPrimaryKeyColumn("whole");
        first.addDefinedColumn("text");
        c.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0), Collections.singletonList(first)));
        for (long n = 0; n < 20; n++) {
            c.putRow(new PutRowRequest(row(table, n)));
        }
        IndexMeta later = new IndexMeta(table + "_later");
        later.addPrimaryKeyColumn("text");
        c.createIndex(new CreateIndexRequest(table, later, true));
        want(c.describeTable(new DescribeTableRequest(table)).getIndexMeta().size() == 2, "two indexes");
        for (String[] index : new String[][] {{table + "_first", "whole"}, {table + "_later", "text"}}) {
            RangeIteratorParameter p = new RangeIteratorParameter(index[0]);
            PrimaryKeyBuilder low = PrimaryKeyBuilder.createPrimaryKeyBuilder(), high = PrimaryKeyBuilder.createPrimaryKeyBuilder();
            for (String name : new String[] {index[1], "id", "n"}) {
                low.addPrimaryKeyColumn(name, PrimaryKeyValue.INF_MIN);
                high.addPrimaryKeyColumn(name, PrimaryKeyValue.INF_MAX);
            }
            p.setInclusiveStartPrimaryKey(low.build());
            p.setExclusiveEndPrimaryKey(high.build());
            p.setMaxVersions(1);
            PrimaryKeyValue before = PrimaryKeyValue.INF_MIN;
            long rows = 0;
            for (Iterator<Row> it = c.createRangeIterator(p); it.hasNext(); rows++) {
                PrimaryKeyValue v = it.next().getPrimaryKey().getPrimaryKeyColumn(index[1]).getValue();
                want(before.isInfMin() || before.compareTo(v) < 0, index[0] + ": " + v + " after " + before);
                before = v;
            }
            want(rows == 20, index[0] + ": " + rows + " rows");
        }
        try {
            c.putRow(new PutRowRequest(row(table + "_later", 1)));
            want(false, "an index was written to");
        } catch (TableStoreException e) {
            want(e.getMessage().equals("Can't write index table directly."), e.toString());
        }
        c.deleteIndex(new DeleteIndexRequest(table, table + "_first"));
        want(c.describeTable(new DescribeTableRequest(table)).getIndexMeta().size() == 1, "one index");
        c.deleteTable(new DeleteTableRequest(table));
    }

    static void transactions(SyncClient c, String table) {
        create(c, table, new TableOptions(-1, 1));
        PrimaryKey partition = PrimaryKeyBuilder.createPrimaryKeyBuilder().addPrimaryKeyColumn("id", PrimaryKeyValue.fromString("row 1")).build();
        StartLocalTransactionRequest start = new StartLocalTransactionRequest(table, partition);
        for (boolean commit : new boolean[] {false, true}) {
            String id = c.startLocalTransaction(start).getTransactionID();
            PutRowRequest put = new PutRowRequest(new RowPutChange(table, key(1)));
            put.setTransactionId(id);
            c.putRow(put);
            BatchWriteRowRequest batch = new BatchWriteRowRequest();
            batch.addRowChange(new RowPutChange(table, key(101)));
            batch.setTransactionId(id);
            want(c.batchWriteRow(batch).isAllSucceed(), "a batch in a transaction");
            want(rows(c, table, id) == 2 && rows(c, table, null) == 0, "rows in a transaction and outside");
            if (commit) {
                c.commitTransaction(new CommitTransactionRequest(id));
            } else {
                c.abortTransaction(new AbortTransactionRequest(id));
            }
            want(rows(c, table, null) == (commit ? 2 : 0), "rows after a transaction");
            refused("OTSSessionNotExist", "Session not exist or may be timeout.", () -> c.commitTransaction(new CommitTransactionRequest(id)));
        }
    }

    /** Returns the number of rows with the partition key, inside or outside a transaction. */
    static int rows(SyncClient c, String table, String transaction) {
        RangeRowQueryCriteria q = new RangeRowQueryCriteria(table);
        q.setInclusiveStartPrimaryKey(key(1));
        q.setExclusiveEndPrimaryKey(key(1001));
        q.setMaxVersions(1);
        GetRangeRequest request = new GetRangeRequest(q);
        if (transaction != null) {
            request.setTransactionId(transaction);
        }
        return c.getRange(request).getRows().size();
    }

    static void lists(SyncClient c, String table) {
        want(c.listStream(new ListStreamRequest(table)).getStreams().isEmpty(), "streams");
        com.alicloud.openservices.tablestore.model.search.ListSearchIndexRequest s = new com.alicloud.openservices.tablestore.model.search.ListSearchIndexRequest();
        s.setTableName(table);
        want(c.listSearchIndex(s).getIndexInfos().isEmpty(), "search indexes");
    }

    public static void main(String[] args) throws Exception {
        SyncClient c = new SyncClient(ENDPOINT, ID, SECRET, INSTANCE);
        try {
            writer(c, "java_batch", BatchRequestType.BATCH_WRITE_ROW);
            writer(c, "java_bulk", BatchRequestType.BULK_IMPORT);
            bulk(c, "java_bulk");
            bulkAnswers(c, "java_answers");
            options(c, "java_options");
            indexNumbers(c, "java_numbers");
            indexes(c, "java_indexed");
            lists(c, "java_bulk");
            transactions(c, "java_transactions");
        } finally {
            c.shutdown();
        }
        System.out.println("ok");
    }
}
