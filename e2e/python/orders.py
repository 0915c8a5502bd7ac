import os
from tablestore import *

client = OTSClient(os.environ["TABLESTORE_ENDPOINT"], os.environ["TABLESTORE_ACCESS_KEY_ID"],
                   os.environ["TABLESTORE_ACCESS_KEY_SECRET"], os.environ["TABLESTORE_INSTANCE"])
client.create_table(TableMeta("orders", [("id", "INTEGER")]), TableOptions(-1, 1), ReservedThroughput(CapacityUnit(0, 0)))
client.put_row("orders", Row([("id", 1)], [("item", "tea")]), Condition(RowExistenceExpectation.IGNORE))
_, row, _ = client.get_row("orders", [("id", 1)], max_version=1)
print(row.attribute_columns[0][1])
