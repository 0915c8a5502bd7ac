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
)

// The dumps in dumps/made were made by dumps/make.sh with the databases themselves, and so was what they say that they hold.

// dumpRow is a row of the table t, by column; a column without a value is missing. Texts begin with s, binary with b and
// integers with i.
type dumpRow map[string]string

// heldBy reads what a database says that its table holds, without the rows in which one of the texts stands.
func heldBy(t *testing.T, name string, but ...string) map[int64]dumpRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("dumps", "made", name))
	must(t, err)
	rows := map[int64]dumpRow{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // id, v, w and perhaps the types of v and w
		id, err := strconv.ParseInt(fields[0], 10, 64)
		must(t, err)
		row := dumpRow{}
		for i, column := range []string{"v", "w"} {
			if fields[i+1] == "-" {
				continue
			}
			value, err := hex.DecodeString(strings.Trim(fields[i+1], "'"))
			must(t, err)
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

// dumpRows are the rows of a table whose key is an integer.
func dumpRows(t *testing.T, s *served, name string) map[int64]dumpRow {
	t.Helper()
	rows := map[int64]dumpRow{}
	for key, cells := range dump(t, s, name) {
		id, err := strconv.ParseInt(strings.Trim(key, "[]"), 10, 64)
		must(t, err)
		row := dumpRow{}
		for _, c := range cells {
			switch v := c.Value.(type) {
			case string:
				row[c.Name] = "s" + v
			case []byte:
				row[c.Name] = "b" + string(v)
			default:
				row[c.Name] = fmt.Sprintf("i%v", v)
			}
		}
		rows[id] = row
	}
	return rows
}

func TestDumpsOfDatabasesAreLoadedCellByCell(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--memory")
	// Of ClickHouse and Hive there is no server to ask: the bytes are those that their documentation gives.
	clickHouse := map[int64]dumpRow{1: {"v": "sa\tb\nc\r\x00\b\f\\'", "w": "s"}, 2: {"w": "s\U0001f600"}, 3: {"v": "sNULL", "w": "s\\N"}}
	const named, tabs = "--no-header --names id,v,w", "1\ta\\tb\\nc\\r\\0\\b\\f\\\\\\'\t\n2\t\\N\t\U0001f600\n3\tNULL\t\\\\N\n"
	for i, dump := range []struct {
		dialect, text string // or the name of a file
		flags         string
		held          map[int64]dumpRow
	}{
		{"mysql", "mysql-batch.txt", "", heldBy(t, "mysql.hex", "sNULL")},
		{"mysql", "mysql-batch-names.txt", named, heldBy(t, "mysql.hex", "sNULL")},
		{"mysql-batch", "mysql-batch.txt", "", heldBy(t, "mysql.hex", "sNULL")},
		{"mysql", "mysql-tab.txt", named, heldBy(t, "mysql.hex")},
		{"mysql-tab", "mysql-tab.txt", named, heldBy(t, "mysql.hex")},
		{"mysql", "mysql-outfile.csv", named + ` --delimiter , --quote "`, heldBy(t, "mysql.hex")},
		{"postgres", "postgres.txt", "", heldBy(t, "postgres.hex")},
		{"postgres", "postgres-dump.txt", named, heldBy(t, "postgres.hex")},
		{"postgres", "postgres-bar.txt", named + " --delimiter | --null nil", heldBy(t, "postgres.hex")},
		{"postgres-csv", "postgres.csv", "", heldBy(t, "postgres.hex")},
		{"sqlite", "sqlite.csv", "", onlyTexts(heldBy(t, "sqlite.hex"))},
		{"sqlite-quote", "sqlite-quote.txt", "", heldBy(t, "sqlite.hex")},

		{"clickhouse", "id\tv\tw\n" + tabs, "", clickHouse},
		{"clickhouse", "id\tv\tw\nUInt32\tNullable(String)\tString\n" + tabs, "", clickHouse},
		{"clickhouse", tabs, named, clickHouse},
		{"clickhouse-csv", "\"id\",\"v\",\"w\"\n\"UInt32\",\"Nullable(String)\",\"LowCardinality(String)\"\n1,\"a\nb\"\"\",\"\"\n2,\\N,\"\\N\"\n", "",
			map[int64]dumpRow{1: {"v": "sa\nb\"", "w": "s"}, 2: {"w": "s\\N"}}},
		{"hive", "1\x01a\\\x01b\\nc\\r\\\\\x01\n2\x01\\N\x01\U0001f600\n3\x01NULL\x01\\\\N\n", named,
			map[int64]dumpRow{1: {"v": "sa\x01b\nc\r\\", "w": "s"}, 2: {"w": "s\U0001f600"}, 3: {"v": "sNULL", "w": "s\\N"}}},
		{"hive", "1\x01C:\\new\\temp\x01\n2\x01\\N\x01x\\\n", named, map[int64]dumpRow{1: {"v": "sC:\\new\\temp", "w": "s"}, 2: {"w": "sx\\"}}},
		{"excel", "\ufeffsep=;\r\nid;v;w\r\n1;1,5;\"x\ny;\"\"z\"\"\"\r\n2;;\"\"\r\n", "", map[int64]dumpRow{1: {"v": "s1,5", "w": "sx\ny;\"z\""}, 2: {"w": "s"}}},
	} {
		t.Run(fmt.Sprint(i, " ", dump.dialect), func(t *testing.T) {
			p := newPlace(t, s.env()...)
			file, err := filepath.Abs(filepath.Join("dumps", "made", dump.text))
			must(t, err)
			if strings.Contains(dump.text, "\n") {
				file = p.write("dump", dump.text)
			}
			name := fmt.Sprint("t", i)
			p.run(0, append([]string{"load", file, "--dialect", dump.dialect, "--table", name, "--create", "--pk", "id:integer", "--settle", "1ms"}, strings.Fields(dump.flags)...)...)
			if diff := differs(dump.held, dumpRows(t, s, name)); diff != "" {
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
