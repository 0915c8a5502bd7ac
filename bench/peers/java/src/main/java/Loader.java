import com.alicloud.openservices.tablestore.ClientConfiguration;
import com.alicloud.openservices.tablestore.DefaultTableStoreWriter;
import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.TableStoreCallback;
import com.alicloud.openservices.tablestore.core.auth.DefaultCredentials;
import com.alicloud.openservices.tablestore.model.*;
import com.alicloud.openservices.tablestore.writer.RowWriteResult;
import com.alicloud.openservices.tablestore.writer.WriterConfig;
import com.alicloud.openservices.tablestore.writer.enums.BatchRequestType;
import com.alicloud.openservices.tablestore.writer.enums.WriteMode;
import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Loads a CSV file into a table with the official SDK for Java, as tsbench client runs its --baseline-cmd: BENCH_FILE,
 * BENCH_TABLE and BENCH_COLUMNS name the data, TABLESTORE_… the server. The argument is the mode: writer (TableStoreWriter
 * with BatchWriteRow), bulk (TableStoreWriter with BulkImport), or batches (SyncClient, 100 rows per request, five threads,
 * like otswriter of DataX with its defaults). Fields have no quotes, so lines are split at commas.
 */
public class Loader {
    static final String ENDPOINT = System.getenv("TABLESTORE_ENDPOINT"), INSTANCE = System.getenv("TABLESTORE_INSTANCE");
    static final String ID = System.getenv("TABLESTORE_ACCESS_KEY_ID"), SECRET = System.getenv("TABLESTORE_ACCESS_KEY_SECRET");
    static final String TABLE = System.getenv("BENCH_TABLE");
    static final String[] COLUMNS = System.getenv("BENCH_COLUMNS").split(",");
    static final String[] NAMES = new String[COLUMNS.length], TYPES = new String[COLUMNS.length];

    public static void main(String[] args) {
        try {
            load(args[0]);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // otherwise the SDK's threads would keep the process running
    }

    static void load(String way) throws Exception {
        for (int i = 0; i < COLUMNS.length; i++) {
            int colon = COLUMNS[i].lastIndexOf(':');
            NAMES[i] = COLUMNS[i].substring(0, colon);
            TYPES[i] = COLUMNS[i].substring(colon + 1);
        }
        try (BufferedReader in = Files.newBufferedReader(Paths.get(System.getenv("BENCH_FILE")), StandardCharsets.UTF_8)) {
            in.readLine(); // the header
            switch (way) {
                case "writer":
                    write(in, BatchRequestType.BATCH_WRITE_ROW);
                    break;
                case "bulk":
                    write(in, BatchRequestType.BULK_IMPORT);
                    break;
                case "batches":
                    batches(in);
                    break;
                default:
                    throw new IllegalArgumentException("want writer, bulk or batches, not " + way);
            }
        }
    }

    static ColumnValue value(String type, String text) {
        switch (type) {
            case "integer":
                return ColumnValue.fromLong(Long.parseLong(text));
            case "double":
                return ColumnValue.fromDouble(Double.parseDouble(text));
            default:
                return ColumnValue.fromString(text);
        }
    }

    static RowPutChange row(String line) {
        String[] fields = line.split(",", -1);
        if (fields.length != NAMES.length) {
            throw new IllegalStateException(fields.length + " fields: " + line);
        }
        RowPutChange change = new RowPutChange(TABLE, PrimaryKeyBuilder.createPrimaryKeyBuilder()
                .addPrimaryKeyColumn(NAMES[0], PrimaryKeyValue.fromLong(Long.parseLong(fields[0]))).build());
        for (int i = 1; i < fields.length; i++) {
            change.addColumn(NAMES[i], value(TYPES[i], fields[i]));
        }
        return change;
    }

    static void write(BufferedReader in, BatchRequestType type) throws Exception {
        WriterConfig config = new WriterConfig();
        config.setBatchRequestType(type);
        config.setWriteMode(WriteMode.PARALLEL);
        config.setBucketCount(4);
        config.setConcurrency(32);
        AtomicLong failed = new AtomicLong(), done = new AtomicLong();
        DefaultTableStoreWriter writer = new DefaultTableStoreWriter(ENDPOINT, new DefaultCredentials(ID, SECRET), INSTANCE, TABLE, config,
                new TableStoreCallback<RowChange, RowWriteResult>() {
                    public void onCompleted(RowChange change, RowWriteResult result) {
                        done.incrementAndGet();
                    }

                    public void onFailed(RowChange change, Exception e) {
                        if (failed.incrementAndGet() == 1) {
                            System.err.println(e);
                        }
                        done.incrementAndGet();
                    }
                });
        long rows = 0;
        for (String line; (line = in.readLine()) != null; rows++) {
            writer.addRowChange(row(line));
        }
        writer.flush();
        writer.close();
        while (done.get() < rows) { // callbacks may still run after close
            TimeUnit.MILLISECONDS.sleep(5);
        }
        if (failed.get() > 0) {
            throw new IllegalStateException(failed + " rows failed");
        }
    }

    static final int BATCH_ROWS = 100, THREADS = 5;

    static void batches(BufferedReader in) throws Exception {
        SyncClient client = new SyncClient(ENDPOINT, ID, SECRET, INSTANCE, new ClientConfiguration());
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        Semaphore waiting = new Semaphore(2 * THREADS);
        List<Future<?>> all = new ArrayList<>();
        List<RowPutChange> rows = new ArrayList<>(BATCH_ROWS);
        for (String line = in.readLine(); line != null || !rows.isEmpty(); line = line == null ? null : in.readLine()) {
            if (line != null) {
                rows.add(row(line));
            }
            if (rows.size() < BATCH_ROWS && line != null) {
                continue;
            }
            List<RowPutChange> batch = rows;
            rows = new ArrayList<>(BATCH_ROWS);
            waiting.acquire();
            all.add(threads.submit(() -> {
                try {
                    BatchWriteRowRequest request = new BatchWriteRowRequest();
                    for (RowPutChange r : batch) {
                        request.addRowChange(r);
                    }
                    if (!client.batchWriteRow(request).isAllSucceed()) {
                        throw new IllegalStateException("rows failed");
                    }
                } finally {
                    waiting.release();
                }
            }));
        }
        for (Future<?> f : all) {
            f.get();
        }
        threads.shutdown();
        client.shutdown();
    }
}
