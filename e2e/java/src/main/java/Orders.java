import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.model.*;

public class Orders {
    public static void main(String[] args) {
        SyncClient client = new SyncClient(System.getenv("TABLESTORE_ENDPOINT"), System.getenv("TABLESTORE_ACCESS_KEY_ID"),
                System.getenv("TABLESTORE_ACCESS_KEY_SECRET"), System.getenv("TABLESTORE_INSTANCE"));
        TableMeta meta = new TableMeta("orders");
        meta.addPrimaryKeyColumn("id", PrimaryKeyType.INTEGER);
        client.createTable(new CreateTableRequest(meta, new TableOptions(-1, 1), new ReservedThroughput(0, 0)));
        PrimaryKey key = PrimaryKeyBuilder.createPrimaryKeyBuilder().addPrimaryKeyColumn("id", PrimaryKeyValue.fromLong(1)).build();
        RowPutChange put = new RowPutChange("orders", key);
        put.addColumn("item", ColumnValue.fromString("tea"));
        client.putRow(new PutRowRequest(put));
        SingleRowQueryCriteria get = new SingleRowQueryCriteria("orders", key);
        get.setMaxVersions(1);
        System.out.println(client.getRow(new GetRowRequest(get)).getRow().getLatestColumn("item").getValue());
        client.shutdown();
    }
}
