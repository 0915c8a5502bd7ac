//go:build e2e

package e2e

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// The dumps in dumps/made were made by dumps/make.sh with the databases themselves, and so was what they say that they hold.

// dumpRow is a row of the table t, by column; a column without a value is missing. Texts begin with s, binary with b and
// integers with i.
type dumpRow map[string]string

// heldBy reads what a database says that its table holds, without the rows in which one of the texts stands.
func heldBy(t *testing.T, name string, but ...string) map[int64]dumpRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("dumps", "made", name))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int64]dumpRow{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // id, v, w and perhaps the types of v and w
		id, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		row := dumpRow{}
		for i, column := range []string{"v", "w"} {
			if fields[i+1] == "-" {
				continue
			}
			value, err := hex.DecodeString(strings.Trim(fields[i+1], "'"))
			if err != nil {
				t.Fatal(err)
			}
			kind := "s"
			if len(fields) == 5 {
				kind = fields[i+3][:1]
			}
			row[column] = strings.Replace(kind, "t", "s", 1) + string(value)
		}
		if !slices.ContainsFunc(but, func(b string) bool { return row["v"] == b || row["w"] == b }) {
			rows[id] = row
		}
	}
	return rows
}

// rowsIn reads all rows of a table with the official SDK.
func rowsIn(t *testing.T, client *tablestore.TableStoreClient, name string) map[int64]dumpRow {
	t.Helper()
	from, to := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
	from.AddPrimaryKeyColumnWithMinValue("id")
	to.AddPrimaryKeyColumnWithMaxValue("id")
	rows := map[int64]dumpRow{}
	for from != nil {
		answer, err := client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: name, StartPrimaryKey: from, EndPrimaryKey: to, Direction: tablestore.FORWARD, MaxVersion: 1,
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range answer.Rows {
			row := dumpRow{}
			for _, c := range r.Columns {
				switch v := c.Value.(type) {
				case string:
					row[c.ColumnName] = "s" + v
				case []byte:
					row[c.ColumnName] = "b" + string(v)
				default:
					row[c.ColumnName] = fmt.Sprintf("i%v", v)
				}
			}
			rows[r.PrimaryKey.PrimaryKeys[0].Value.(int64)] = row
		}
		from = answer.NextStartPrimaryKey
	}
	return rows
}

func TestDumpsOfDatabasesAreLoadedCellByCell(t *testing.T) {
	s := startServe(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
	client := tablestore.NewClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
	named := []string{"--no-header", "--names", "id,v,w"}
	for i, dump := range []struct {
		file, dialect string
		flags         []string
		held          map[int64]dumpRow
	}{
		{"mysql-batch.txt", "mysql", nil, heldBy(t, "mysql.hex", "sNULL")},
		{"mysql-batch-names.txt", "mysql", named, heldBy(t, "mysql.hex", "sNULL")},
		{"mysql-batch.txt", "mysql-batch", nil, heldBy(t, "mysql.hex", "sNULL")},
		{"mysql-tab.txt", "mysql", named, heldBy(t, "mysql.hex")},
		{"mysql-tab.txt", "mysql-tab", named, heldBy(t, "mysql.hex")},
		{"mysql-outfile.csv", "mysql", append(named, "--delimiter", ",", "--quote", `"`), heldBy(t, "mysql.hex")},
		{"postgres.txt", "postgres", nil, heldBy(t, "postgres.hex")},
		{"postgres-dump.txt", "postgres", named, heldBy(t, "postgres.hex")},
		{"postgres-bar.txt", "postgres", append(named, "--delimiter", "|", "--null", "nil"), heldBy(t, "postgres.hex")},
		{"postgres.csv", "postgres-csv", nil, heldBy(t, "postgres.hex")},
		{"sqlite.csv", "sqlite", nil, onlyTexts(heldBy(t, "sqlite.hex"))},
		{"sqlite-quote.txt", "sqlite-quote", nil, heldBy(t, "sqlite.hex")},
	} {
		t.Run(dump.file+" as "+dump.dialect, func(t *testing.T) {
			name := fmt.Sprintf("t%d", i)
			dir := t.TempDir()
			args := append([]string{"load", filepath.Join("dumps", "made", dump.file), "--dialect", dump.dialect, "--table", name, "--create", "--pk", "id:integer",
				"--endpoint", s.URL, "--instance", s.Instance, "--run-dir", filepath.Join(dir, "run"), "--settle", "1ms", "--quiet"}, dump.flags...)
			if _, stderr, code := runBinary(t, args...); code != 0 {
				rejects, _ := os.ReadFile(filepath.Join(dir, "run", "rejects.jsonl"))
				t.Fatalf("exit code %d\n%s%s", code, stderr, rejects)
			}
			if diff := differs(dump.held, rowsIn(t, client, name)); diff != "" {
				t.Errorf("the table differs from what the database holds (-database +table):\n%s", diff)
			}
		})
	}
}

// onlyTexts leaves out rows with blobs, which SQLite's CSV cannot show. Its numbers are texts like any other.
func onlyTexts(rows map[int64]dumpRow) map[int64]dumpRow {
	maps.DeleteFunc(rows, func(_ int64, r dumpRow) bool { return strings.HasPrefix(r["v"], "b") || strings.HasPrefix(r["w"], "b") })
	for _, r := range rows {
		for column, value := range r {
			r[column] = "s" + value[1:]
		}
	}
	return rows
}

// Of ClickHouse and Hive there is no server to ask: the bytes are those that their documentation gives.
func TestDumpsByTheirDocumentedFormatsAreLoadedCellByCell(t *testing.T) {
	s := startServe(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
	client := tablestore.NewClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
	named := []string{"--no-header", "--names", "id,v,w"}
	clickHouse := map[int64]dumpRow{1: {"v": "sa\tb\nc\r\x00\b\f\\'", "w": "s"}, 2: {"w": "s\U0001f600"}, 3: {"v": "sNULL", "w": "s\\N"}}
	const tabs = "1\ta\\tb\\nc\\r\\0\\b\\f\\\\\\'\t\n2\t\\N\t\U0001f600\n3\tNULL\t\\\\N\n"
	for i, dump := range []struct {
		dialect, text string
		flags         []string
		held          map[int64]dumpRow
	}{
		{"clickhouse", "id\tv\tw\n" + tabs, nil, clickHouse},
		{"clickhouse", "id\tv\tw\nUInt32\tNullable(String)\tString\n" + tabs, nil, clickHouse},
		{"clickhouse", tabs, named, clickHouse},
		{"clickhouse-csv", "\"id\",\"v\",\"w\"\n\"UInt32\",\"Nullable(String)\",\"LowCardinality(String)\"\n1,\"a\nb\"\"\",\"\"\n2,\\N,\"\\N\"\n", nil,
			map[int64]dumpRow{1: {"v": "sa\nb\"", "w": "s"}, 2: {"w": "s\\N"}}},
		{"hive", "1\x01a\\\x01b\\nc\\r\\\\\x01\n2\x01\\N\x01\U0001f600\n3\x01NULL\x01\\\\N\n", named,
			map[int64]dumpRow{1: {"v": "sa\x01b\nc\r\\", "w": "s"}, 2: {"w": "s\U0001f600"}, 3: {"v": "sNULL", "w": "s\\N"}}},
		{"hive", "1\x01C:\\new\\temp\x01\n2\x01\\N\x01x\\\n", named, map[int64]dumpRow{1: {"v": "sC:\\new\\temp", "w": "s"}, 2: {"w": "sx\\"}}},
		{"excel", "\ufeffsep=;\r\nid;v;w\r\n1;1,5;\"x\ny;\"\"z\"\"\"\r\n2;;\"\"\r\n", nil, map[int64]dumpRow{1: {"v": "s1,5", "w": "sx\ny;\"z\""}, 2: {"w": "s"}}},
	} {
		t.Run(fmt.Sprintf("%s %d", dump.dialect, i), func(t *testing.T) {
			name, dir := fmt.Sprintf("t%d", i), t.TempDir()
			file := filepath.Join(dir, "dump")
			if err := os.WriteFile(file, []byte(dump.text), 0o644); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"load", file, "--dialect", dump.dialect, "--table", name, "--create", "--pk", "id:integer",
				"--endpoint", s.URL, "--instance", s.Instance, "--run-dir", filepath.Join(dir, "run"), "--settle", "1ms", "--quiet"}, dump.flags...)
			if _, stderr, code := runBinary(t, args...); code != 0 {
				rejects, _ := os.ReadFile(filepath.Join(dir, "run", "rejects.jsonl"))
				t.Fatalf("exit code %d\n%s%s", code, stderr, rejects)
			}
			if diff := differs(dump.held, rowsIn(t, client, name)); diff != "" {
				t.Errorf("the table differs from the dump (-dump +table):\n%s", diff)
			}
		})
	}
}
