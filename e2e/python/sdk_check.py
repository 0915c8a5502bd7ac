"""Runs the official SDK for Python against the server that TABLESTORE_ENDPOINT, TABLESTORE_INSTANCE, TABLESTORE_ACCESS_KEY_ID
and TABLESTORE_ACCESS_KEY_SECRET name. It checks the signature, date and MD5 of every answer. Every test runs with both
of the SDK's signatures, and creates its own table."""

import base64
import json
import os
import time
import unittest
import urllib.request

from tablestore import (
    INF_MAX, INF_MIN, PK_AUTO_INCR, BatchGetRowRequest, BatchWriteRowRequest, CapacityUnit, CastType, ComparatorType,
    CompositeColumnCondition, Condition, DeleteRowItem, Direction, LogicalOperator, OTSClient, PutRowItem, RegexRule,
    ReservedThroughput, ReturnType, Row, RowExistenceExpectation, SecondaryIndexMeta, SecondaryIndexType,
    SingleColumnCondition, SingleColumnRegexCondition, TableInBatchGetRowItem, TableInBatchWriteRowItem, TableMeta,
    TableOptions, UpdateRowItem,
)
from tablestore.error import OTSServiceError
from tablestore.retry import NoRetryPolicy

IGNORE, EXIST, ABSENT = (RowExistenceExpectation.IGNORE, RowExistenceExpectation.EXPECT_EXIST,
                         RowExistenceExpectation.EXPECT_NOT_EXIST)
STRING_AND_INTEGER = [("id", "STRING"), ("n", "INTEGER")]


def connect(**change):
    names = {
        "end_point": os.environ["TABLESTORE_ENDPOINT"],
        "access_key_id": os.environ["TABLESTORE_ACCESS_KEY_ID"],
        "access_key_secret": os.environ["TABLESTORE_ACCESS_KEY_SECRET"],
        "instance_name": os.environ["TABLESTORE_INSTANCE"],
        "retry_policy": NoRetryPolicy(),
    }
    names.update(change)
    return OTSClient(**names)


def plain(columns):
    return [(c[0], bytes(c[1]) if isinstance(c[1], bytearray) else c[1]) for c in columns or []]


def engine(what, body=None):
    """Calls the engine's own API, which requires the server's key."""
    user = "%s:%s" % (os.environ["TABLESTORE_ACCESS_KEY_ID"], os.environ["TABLESTORE_ACCESS_KEY_SECRET"])
    request = urllib.request.Request(os.environ["TABLESTORE_ENDPOINT"] + "/_engine/" + what, json.dumps(body).encode() if body else b"",
                                     {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Contract:
    """The tests; the classes below say how requests are signed."""

    options = {}
    number = 0

    def setUp(self):
        self.client = connect(**self.options)

    def name(self):
        Contract.number += 1
        return "python_%d_%d_%d" % (os.getpid(), time.time(), Contract.number)

    def table(self, schema, versions=1, deviation=86400, ttl=-1, allow_update=None):
        name = self.name()
        self.client.create_table(TableMeta(name, schema), TableOptions(ttl, versions, deviation, allow_update),
                                 ReservedThroughput(CapacityUnit(0, 0)))
        return name

    def put(self, table, key, columns, expect=IGNORE, condition=None, returned=None):
        return self.client.put_row(table, Row(key, columns), Condition(expect, condition), returned)

    def update(self, table, key, columns, expect=IGNORE, condition=None):
        return self.client.update_row(table, Row(key, columns), Condition(expect, condition))

    def get(self, table, key, **more):
        _, row, _ = self.client.get_row(table, key, **more)
        return None if row is None else plain(row.attribute_columns)

    def refused(self, status, code, message, call, *args, **named):
        with self.assertRaises(OTSServiceError) as caught:
            call(*args, **named)
        e = caught.exception
        self.assertEqual((e.get_http_status(), e.get_error_code()), (status, code), e)
        self.assertIn(message, e.get_error_message())
        self.assertTrue(e.get_request_id())

    def test_tables_are_created_listed_described_changed_and_deleted(self):
        t = self.table(STRING_AND_INTEGER)
        self.assertIn(t, self.client.list_table())
        d = self.client.describe_table(t)
        self.assertEqual([tuple(c[:2]) for c in d.table_meta.schema_of_primary_key], STRING_AND_INTEGER)
        self.assertEqual((d.table_options.time_to_live, d.table_options.max_version), (-1, 1))
        u = self.client.update_table(t, TableOptions(86400, 2, 1000))
        self.assertEqual((u.table_options.time_to_live, u.table_options.max_version, u.table_options.max_time_deviation), (86400, 2, 1000))
        self.refused(409, "OTSObjectAlreadyExist", "Requested table already exists.", self.client.create_table,
                     TableMeta(t, STRING_AND_INTEGER), TableOptions(), ReservedThroughput(CapacityUnit(0, 0)))
        self.client.delete_table(t)
        self.refused(404, "OTSObjectNotExist", "Requested table does not exist.", self.client.describe_table, t)

    def test_values_come_back_as_they_were(self):
        t = self.table([("id", "STRING"), ("n", "INTEGER"), ("b", "BINARY")])
        key = [("id", "上海 🀄"), ("n", -2**63), ("b", bytearray(b"\x00\xff\x80"))]
        columns = [("bytes", bytearray(b"\x01\x00\xff")), ("double", 3.25), ("empty", ""), ("largest", 2**63 - 1), ("no", False),
                   ("text", '你好,\n"世界" é'), ("yes", True), ("zero", 0)]
        # Names are in ASCII: this SDK counts a name's characters instead of its bytes.
        consumed, _ = self.put(t, key, columns)
        self.assertEqual((consumed.read, consumed.write), (0, 1))
        consumed, row, _ = self.client.get_row(t, key)
        self.assertEqual((consumed.read, consumed.write), (1, 0))
        self.assertEqual(plain(row.primary_key), [(k, bytes(v) if isinstance(v, bytearray) else v) for k, v in key])
        self.assertEqual(plain(row.attribute_columns), [(k, bytes(v) if isinstance(v, bytearray) else v) for k, v in columns])
        self.assertIsNone(self.get(t, [("id", ""), ("n", 0), ("b", bytearray(b""))]))

    def test_a_put_replaces_and_an_update_changes(self):
        t, k = self.table(STRING_AND_INTEGER), [("id", "a"), ("n", 1)]
        self.put(t, k, [("x", 1), ("y", "old")])
        self.put(t, k, [("y", "new"), ("z", True)])
        self.assertEqual(self.get(t, k), [("y", "new"), ("z", True)])
        self.update(t, k, {"PUT": [("x", 7)], "DELETE_ALL": ["z"]})
        self.assertEqual(self.get(t, k), [("x", 7), ("y", "new")])
        self.update(t, k, {"INCREMENT": [("x", 2**53)]})
        self.assertEqual(self.get(t, k, columns_to_get=["x"]), [("x", 2**53 + 7)])
        self.client.delete_row(t, Row(k), Condition(IGNORE))
        self.assertIsNone(self.get(t, k))

    def test_versions(self):
        t, k, at = self.table(STRING_AND_INTEGER, 3, 10 * 365 * 86400), [("id", "a"), ("n", 1)], 1700000000000
        self.put(t, k, [("v", "first", at), ("v", "second", at + 1000)])
        _, row, _ = self.client.get_row(t, k, max_version=3)
        self.assertEqual([tuple(c) for c in row.attribute_columns], [("v", "second", at + 1000), ("v", "first", at)])
        self.update(t, k, {"DELETE": [("v", None, at + 1000)]})
        self.assertEqual(self.get(t, k), [("v", "first")])
        self.assertEqual(self.get(t, k, max_version=None, time_range=(at, at + 1)), [("v", "first")])

    def test_conditions(self):
        t, k = self.table(STRING_AND_INTEGER), [("id", "a"), ("n", 1)]
        failed = (403, "OTSConditionCheckFail", "Condition check failed.")
        self.refused(*failed, self.put, t, k, [("x", 1)], EXIST)
        consumed, _ = self.put(t, k, [("x", 1)], ABSENT)
        self.assertEqual((consumed.read, consumed.write), (1, 1))
        self.refused(*failed, self.put, t, k, [("x", 1)], ABSENT)
        one = SingleColumnCondition("x", 1, ComparatorType.EQUAL, False)
        self.update(t, k, {"PUT": [("x", 2)]}, EXIST, one)
        self.refused(*failed, self.update, t, k, {"PUT": [("x", 3)]}, EXIST, one)
        self.assertEqual(self.get(t, k), [("x", 2)])

    def test_batches(self):
        t, other = self.table(STRING_AND_INTEGER), self.table([("b", "BINARY")])
        self.put(t, [("id", "old"), ("n", 1)], [("x", 1)])
        r = BatchWriteRowRequest()
        r.add(TableInBatchWriteRowItem(t, [
            PutRowItem(Row([("id", "新"), ("n", 1)], [("x", "值")]), Condition(IGNORE), ReturnType.RT_PK),
            PutRowItem(Row([("id", "none"), ("n", 1)], [("x", 1)]), Condition(EXIST)),
            UpdateRowItem(Row([("id", "up"), ("n", 2)], {"PUT": [("y", 2.5)]}), Condition(IGNORE)),
            DeleteRowItem(Row([("id", "old"), ("n", 1)]), Condition(IGNORE)),
        ]))
        r.add(TableInBatchWriteRowItem(other, [PutRowItem(Row([("b", bytearray(b"k"))], [("c", 1)]), Condition(IGNORE))]))
        answer = self.client.batch_write_row(r)
        self.assertEqual([(row.is_ok, row.error_code) for row in answer.get_put_by_table(t)], [(True, None), (False, "OTSConditionCheckFail")])
        self.assertEqual([tuple(c) for c in answer.get_put_by_table(t)[0].row.primary_key], [("id", "新"), ("n", 1)])
        self.assertTrue(answer.get_update_by_table(t)[0].is_ok and answer.get_delete_by_table(t)[0].is_ok and answer.get_put_by_table(other)[0].is_ok)
        g = BatchGetRowRequest()
        g.add(TableInBatchGetRowItem(t, [[("id", "新"), ("n", 1)], [("id", "old"), ("n", 1)]], max_version=1))
        g.add(TableInBatchGetRowItem(other, [[("b", bytearray(b"k"))]], max_version=1))
        got = self.client.batch_get_row(g)
        rows = got.get_result_by_table(t)
        self.assertEqual([row.is_ok for row in rows], [True, True])
        self.assertEqual(plain(rows[0].row.attribute_columns), [("x", "值")])
        self.assertIsNone(rows[1].row)
        self.assertEqual(plain(got.get_result_by_table(other)[0].row.primary_key), [("b", b"k")])

    # The next four tests check assertions of the SDK's own suite about the service.
    def test_every_operation_rejects_keys_that_do_not_match_the_table(self):
        for schema, key, message in (
            ([("PK1", "STRING")], [("PK2", "blah")], "Validate PK name fail. Input: PK2, Meta: PK1."),
            ([("PK1", "STRING")], [("PK2", 123)], "Validate PK name fail. Input: PK2, Meta: PK1."),
            ([("PK1", "STRING"), ("PK2", "INTEGER")], [("PK1", "blah")], "Validate PK size fail. Input: 1, Meta: 2."),
            ([("PK1", "STRING"), ("PK2", "INTEGER")], [("PK1", "blah"), ("PK2", 123), ("PK3", "blah")], "Validate PK size fail. Input: 3, Meta: 2."),
        ):
            t, put, delete = self.table(schema), Row(key, {"put": [("C1", "V")]}), Row(key)
            for call, more in (
                (self.client.get_row, (t, key, None, None, 1)), (self.client.put_row, (t, Row(key, [("C1", "V")]), Condition(IGNORE))),
                (self.client.update_row, (t, put, Condition(IGNORE))), (self.client.delete_row, (t, delete, Condition(IGNORE))),
                (self.client.get_range, (t, Direction.FORWARD, key, [(name, INF_MAX) for name, _ in key], None, None, None, 1)),
            ):
                self.refused(400, "OTSInvalidPK", message, call, *more)
            g, w = BatchGetRowRequest(), BatchWriteRowRequest()
            g.add(TableInBatchGetRowItem(t, [key], [], None, 1))
            w.add(TableInBatchWriteRowItem(t, [UpdateRowItem(put, Condition(IGNORE)), DeleteRowItem(delete, Condition(IGNORE))]))
            answer = self.client.batch_write_row(w)
            failed = self.client.batch_get_row(g).get_failed_rows() + answer.get_failed_of_update() + answer.get_failed_of_delete()
            self.assertEqual([(row.error_code, row.error_message) for row in failed], [("OTSInvalidPK", message)] * 3)

    def test_empty_batches(self):
        t = self.table(STRING_AND_INTEGER)
        w, g = BatchWriteRowRequest(), BatchGetRowRequest()
        self.refused(400, "OTSParameterInvalid", "No row is specified in BatchWriteRow.", self.client.batch_write_row, w)
        self.refused(400, "OTSParameterInvalid", "No row specified in the request of BatchGetRow.", self.client.batch_get_row, g)
        w.add(TableInBatchWriteRowItem(t, []))
        self.refused(400, "OTSParameterInvalid", "No operation is specified for table: '%s'." % t, self.client.batch_write_row, w)
        g.add(TableInBatchGetRowItem(t, [], [], None, 1))
        self.client.batch_get_row(g)

    def test_ranges_of_the_wrong_direction_or_limit(self):
        for schema, low, high in (("STRING", "AAA", "DDDD"), ("INTEGER", 10, 90)):
            t, low, high = self.table([("PK0", schema)]), [("PK0", low)], [("PK0", high)]
            for direction, start, end, limit, message in (
                (Direction.FORWARD, high, low, None, "Begin key must less than end key in FORWARD"), (Direction.FORWARD, low, low, None, "Begin key must less than end key in FORWARD"),
                (Direction.BACKWARD, low, high, None, "Begin key must more than end key in BACKWARD"), (Direction.FORWARD, low, high, 0, "The limit must be greater than 0."),
                (Direction.FORWARD, low, high, -1, "The limit must be greater than 0."),
            ):
                self.refused(400, "OTSParameterInvalid", message, self.client.get_range, t, direction, start, end, None, limit, None, 1)

    def test_deleting_columns_creates_no_row(self):
        t, key = self.table([("PK", "INTEGER")]), [("PK", 11)]
        columns = ["Col%d" % i for i in range(128)]
        self.update(t, key, {"delete_all": columns})
        w = BatchWriteRowRequest()
        w.add(TableInBatchWriteRowItem(t, [UpdateRowItem(Row(key, {"delete_all": columns}), Condition(IGNORE))]))
        self.assertTrue(self.client.batch_write_row(w).is_all_succeed())
        self.assertIsNone(self.get(t, key, max_version=1))

    def six(self):
        t = self.table(STRING_AND_INTEGER)
        for key in [("a", -1), ("a", 0), ("a", 2**53 + 1), ("b", 2), ("甲", 3), ("甲", 4)]:
            self.put(t, list(zip(("id", "n"), key)), [("age", key[1]), ("city", "上海" if key[0] == "甲" else "Paris")])
        return t

    def ages(self, table, direction, **more):
        bounds = [[("id", INF_MIN), ("n", INF_MIN)], [("id", INF_MAX), ("n", INF_MAX)]]
        if direction == Direction.BACKWARD:
            bounds.reverse()
        found, start, pages = [], bounds[0], 0
        while start is not None:
            _, start, rows, _ = self.client.get_range(table, direction, start, bounds[1], limit=2, **more)
            found += [dict(plain(row.attribute_columns))["age"] for row in rows]
            pages += 1
        if not more:
            self.assertGreaterEqual(pages, 3)
        return found

    def test_ranges(self):
        t, all_of_them = self.six(), [-1, 0, 2**53 + 1, 2, 3, 4]
        self.assertEqual(self.ages(t, Direction.FORWARD), all_of_them)
        self.assertEqual(self.ages(t, Direction.BACKWARD), all_of_them[::-1])
        self.refused(400, "OTSParameterInvalid", "Begin key must less than end key in FORWARD", self.client.get_range, t,
                     Direction.FORWARD, [("id", "b"), ("n", 1)], [("id", "a"), ("n", 1)])

    def test_filters(self):
        t = self.six()
        shanghai = SingleColumnCondition("city", "上海", ComparatorType.EQUAL, False)
        self.assertEqual(self.ages(t, Direction.FORWARD, column_filter=shanghai), [3, 4])
        self.assertEqual(self.ages(t, Direction.BACKWARD, column_filter=shanghai), [4, 3])
        middle = CompositeColumnCondition(LogicalOperator.AND)
        middle.add_sub_condition(SingleColumnCondition("age", 0, ComparatorType.GREATER_EQUAL, False))
        middle.add_sub_condition(SingleColumnCondition("age", 4, ComparatorType.LESS_THAN, False))
        self.assertEqual(self.ages(t, Direction.FORWARD, column_filter=middle), [0, 2, 3])
        other = CompositeColumnCondition(LogicalOperator.NOT)
        other.add_sub_condition(middle)
        self.assertEqual(self.ages(t, Direction.BACKWARD, column_filter=other), [4, 2**53 + 1, -1])
        self.assertIsNone(self.get(t, [("id", "b"), ("n", 2)], column_filter=shanghai))

    def test_auto_increment(self):
        t = self.table([("id", "STRING"), ("seq", "INTEGER", PK_AUTO_INCR)])
        auto, numbers = [("id", "user"), ("seq", PK_AUTO_INCR)], []
        for i in range(3):
            _, row = self.put(t, auto, [("i", i)], returned=ReturnType.RT_PK)
            numbers.append(dict(row.primary_key)["seq"])
        r = BatchWriteRowRequest()
        r.add(TableInBatchWriteRowItem(t, [PutRowItem(Row(auto, [("i", i)]), Condition(IGNORE), ReturnType.RT_PK) for i in (3, 4)]))
        numbers += [dict(row.row.primary_key)["seq"] for row in self.client.batch_write_row(r).get_put_by_table(t)]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(self.get(t, [("id", "user"), ("seq", numbers[4])]), [("i", 4)])
        self.refused(400, "OTSParameterInvalid", "", self.put, t, [("id", "user"), ("seq", numbers[0])], [("i", 9)])

    def test_credentials(self):
        for change, message in [({"access_key_secret": "wrong"}, "Signature mismatch."), ({"access_key_id": "nobody"}, "The AccessKeyID does not exist."),
                                ({"instance_name": "nowhere"}, "The instance is not found.")]:
            self.refused(403, "OTSAuthFailed", message, connect(**{**self.options, **change}).list_table)
        self.assertIsNotNone(connect(sts_token="a token", **self.options).list_table())

    def index_rows(self, index, names):
        """Returns the rows of an index as key and columns."""
        _, _, rows, _ = self.client.get_range(index, Direction.FORWARD, [(n, INF_MIN) for n in names], [(n, INF_MAX) for n in names])
        return [(tuple(c[1] for c in row.primary_key), plain(row.attribute_columns)) for row in rows]

    def test_indexes(self):
        t, first = self.name(), self.name()
        self.client.create_table(TableMeta(t, STRING_AND_INTEGER, [("city", "STRING"), ("age", "INTEGER"), ("tag", "BINARY")]), TableOptions(-1, 1),
                                 ReservedThroughput(CapacityUnit(0, 0)), [SecondaryIndexMeta(first, ["city"], ["age"])])
        self.put(t, [("id", "a"), ("n", 1)], [("city", "上海"), ("age", 30), ("other", True)])
        self.put(t, [("id", "b"), ("n", 2)], [("city", "Paris"), ("tag", bytearray(b"\x00"))])
        self.put(t, [("id", "c"), ("n", 3)], [("age", 50), ("tag", bytearray(b"\x00\xff"))])
        of_first = ["city", "id", "n"]
        self.assertEqual(self.index_rows(first, of_first), [(("Paris", "b", 2), []), (("上海", "a", 1), [("age", 30)])])
        self.assertEqual(self.get(first, [("city", "上海"), ("id", "a"), ("n", 1)]), [("age", 30)])
        full, empty = self.name(), self.name()
        self.client.create_secondary_index(t, SecondaryIndexMeta(full, ["tag", "n"], []), True)
        self.client.create_secondary_index(t, SecondaryIndexMeta(empty, ["age"], ["city"]), False)
        found = self.client.describe_table(t).secondary_indexes
        self.assertEqual([(x.index_name, x.primary_key_names, x.defined_column_names, x.index_type) for x in found], [
            (first, ["city"], ["age"], SecondaryIndexType.GLOBAL_INDEX), (full, ["tag", "n"], [], SecondaryIndexType.GLOBAL_INDEX),
            (empty, ["age"], ["city"], SecondaryIndexType.GLOBAL_INDEX)])  # keys as given; an index has its whole key
        self.assertEqual([key[1:] for key, _ in self.index_rows(full, ["tag", "n", "id"])], [(2, "b"), (3, "c")])
        self.assertEqual(self.index_rows(empty, ["age", "id", "n"]), [])
        self.update(t, [("id", "c"), ("n", 3)], {"PUT": [("city", "Rome")], "INCREMENT": [("age", 1)]})
        self.update(t, [("id", "a"), ("n", 1)], {"DELETE_ALL": ["city"]})
        self.client.delete_row(t, Row([("id", "b"), ("n", 2)]), Condition(IGNORE))
        self.assertEqual(self.index_rows(first, of_first), [(("Rome", "c", 3), [("age", 51)])])
        self.assertEqual(self.index_rows(full, ["tag", "n", "id"]), [((bytearray(b"\x00\xff"), 3, "c"), [])])
        self.refused(400, "OTSParameterInvalid", "Can't write index table directly.", self.put, full,
                     [("tag", bytearray(b"x")), ("n", 1), ("id", "a")], [("x", 1)])
        local = self.name()

        def create_local(*key):
            self.client.create_secondary_index(t, SecondaryIndexMeta(local, list(key), [], SecondaryIndexType.LOCAL_INDEX), True)

        self.refused(400, "OTSParameterInvalid", "", create_local, "city", "id")
        create_local("id", "city")
        self.assertEqual(self.index_rows(local, ["id", "city", "n"]), [(("c", "Rome", 3), [])])  # row a no longer has a city
        self.client.delete_secondary_index(t, first)
        self.refused(404, "OTSObjectNotExist", "Requested index does not exist.", self.client.delete_secondary_index, t, first)
        self.refused(404, "OTSObjectNotExist", "", self.client.describe_table, first)
        self.client.delete_table(t)
        self.refused(404, "OTSObjectNotExist", "", self.client.describe_table, full)

    def test_a_table_may_reject_updates(self):
        t, k = self.table(STRING_AND_INTEGER, allow_update=False), [("id", "a"), ("n", 1)]
        self.assertIs(self.client.describe_table(t).table_options.allow_update, False)
        self.put(t, k, [("x", 1)])
        self.refused(400, "OTSParameterInvalid", "Update operation is not allowed in this table", self.update, t, k, {"PUT": [("x", 2)]})
        self.assertIs(self.client.update_table(t, TableOptions(-1, 1, 86400, True)).table_options.allow_update, True)
        self.update(t, k, {"PUT": [("x", 2)]})
        self.assertEqual(self.get(t, k), [("x", 2)])

    def test_regular_expressions(self):
        t, k = self.table(STRING_AND_INTEGER), [("id", "a"), ("n", 1)]
        self.put(t, k, [("text", "order 17, paid")])
        rule = RegexRule("order ([0-9]+)", CastType.VT_INTEGER)
        self.update(t, k, {"PUT": [("seen", True)]}, EXIST, SingleColumnRegexCondition("text", ComparatorType.EQUAL, 17, rule))
        self.refused(403, "OTSConditionCheckFail", "", self.update, t, k, {"PUT": [("seen", False)]}, EXIST,
                     SingleColumnRegexCondition("text", ComparatorType.GREATER_THAN, 17, rule))
        self.assertIsNone(self.get(t, k, column_filter=SingleColumnRegexCondition("none", ComparatorType.EQUAL, 17, rule)))
        self.assertEqual(self.get(t, k, column_filter=SingleColumnRegexCondition("text", ComparatorType.LESS_EQUAL, 17, rule)),
                         [("seen", True), ("text", "order 17, paid")])

    def test_time_to_live_and_reset(self):
        t, k, later = self.table(STRING_AND_INTEGER, ttl=86400), [("id", "a"), ("n", 1)], [("id", "b"), ("n", 1)]
        try:
            self.put(t, k, [("x", 1)])
            engine("clock", {"advance": "23h"})
            self.assertEqual(self.get(t, k), [("x", 1)])
            self.put(t, later, [("x", 2)])
            engine("clock", {"advance": "2h"})
            self.assertIsNone(self.get(t, k))
            self.assertEqual(self.get(t, later), [("x", 2)])
        finally:
            self.assertGreater(engine("reset")["tables"], 0)
        self.assertEqual(self.client.list_table(), ())

    def test_only_the_transaction_sees_its_writes_until_it_is_committed(self):
        t, k, new = self.table(STRING_AND_INTEGER), [("id", "a"), ("n", 1)], [("id", "a"), ("n", 2)]
        everything = [("id", "a"), ("n", INF_MIN)], [("id", "a"), ("n", INF_MAX)]

        def rows(transaction=None):
            _, _, found, _ = self.client.get_range(t, Direction.FORWARD, *everything, max_version=1, transaction_id=transaction)
            return [(row.primary_key[1][1], plain(row.attribute_columns)[0][1]) for row in found]

        def rows_by_get(transaction=None):
            found = [self.get(t, key, max_version=1, transaction_id=transaction) for key in (k, new)]
            return [(n + 1, columns[0][1]) for n, columns in enumerate(found) if columns]

        def write(transaction=None):
            ignored = Condition(IGNORE)
            self.client.put_row(t, Row(k, [("x", 2)]), ignored, None, transaction)
            self.client.update_row(t, Row(k, {"PUT": [("x", 3)]}), ignored, None, transaction)
            self.client.delete_row(t, Row(k), ignored, None, transaction)
            batch = BatchWriteRowRequest()
            batch.add(TableInBatchWriteRowItem(t, [PutRowItem(Row(new, [("x", 4)]), ignored)]))
            batch.set_transaction_id(transaction)
            self.assertTrue(self.client.batch_write_row(batch).is_all_succeed())

        self.put(t, k, [("x", 1)])
        for end, left in (self.client.abort_transaction, [(1, 1)]), (self.client.commit_transaction, [(2, 4)]):
            transaction = self.client.start_local_transaction(t, [("id", "a")])
            self.refused(409, "OTSRowOperationConflict", "Data is being modified", self.client.start_local_transaction, t, [("id", "a")])
            self.refused(409, "OTSRowOperationConflict", "Data is being modified", self.put, t, k, [("x", 9)])
            write(transaction)
            for read in rows, rows_by_get:
                self.assertEqual(read(transaction), [(2, 4)])
                self.assertEqual(read(), [(1, 1)])
            end(transaction)
            self.refused(404, "OTSSessionNotExist", "Session not exist", end, transaction)
            self.assertEqual(rows(), left)

    def test_missing_features_list_nothing_or_are_rejected_by_name(self):
        t = self.table(STRING_AND_INTEGER)
        self.assertEqual(list(self.client.list_search_index(t)), [])
        refused = (400, "OTSUnsupportedOperation")
        self.refused(*refused, "DeleteSearchIndex", self.client.delete_search_index, t, "i")
        self.refused(*refused, "SQLQuery", self.client.exe_sql_query, "select 1")


class SignatureV2(Contract, unittest.TestCase):
    options = {}


class SignatureV4(Contract, unittest.TestCase):
    options = {"region": "cn-hangzhou"}


if __name__ == "__main__":
    unittest.main()
