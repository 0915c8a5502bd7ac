//go:build e2e && linux

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var (
	bigRows  = flag.Int("big-rows", 10_000, "how many rows TestABigTable loads")
	bigReads = flag.Int("big-reads", 20, "how many rows it reads one by one after each part")
)

const bigParts = 10

// TestABigTable loads student cards into one engine in ten parts, each of a tenth of the file and by a process of its own, and reads rows
// one by one after each. Then it reads the whole table and finds every row. It prints how the engine does as the table grows: rows a
// second end to end, and the engine's own CPU for a row, which other processes disturb less.
func TestABigTable(t *testing.T) {
	dir := t.TempDir()
	cards := filepath.Join(dir, "cards.csv")
	newPlace(t).run(0, "gen", "student-cards", "--rows", strconv.Itoa(*bigRows), "-o", cards)
	store := filepath.Join(dir, "store")
	s := startServe(t, "--store", store)
	b := &bigTable{t: t, served: s, cards: cards, client: tablestore.NewClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}
	t.Logf("%-12s %12s %14s %14s %14s %14s", "rows", "rows/s", "engine µs/row", "read p50", "read p99", "engine µs/read")
	var rates, costs []float64
	for part := range bigParts {
		rate, cost := b.load(part)
		rates, costs = append(rates, rate), append(costs, cost)
		p50, p99, read := b.reads(part)
		t.Logf("%-12d %12.0f %14.2f %14v %14v %14.0f", *bigRows*(part+1)/bigParts, rate, cost, p50, p99, read)
	}
	begun, before := time.Now(), b.cpu()
	rows := b.scan()
	seconds := time.Since(begun).Seconds()
	t.Logf("scan: %d rows, %.0f rows/s, engine %.2f µs/row", rows, float64(rows)/seconds, (b.cpu()-before)/float64(rows)*1e6)
	if rows != *bigRows {
		t.Errorf("the table has %d rows, want %d", rows, *bigRows)
	}
	s.stop(t)
	t.Logf("disk: %.0f bytes a row", float64(folderBytes(t, store))/float64(rows))
	last := bigParts - 1
	t.Logf("the last tenth against the first: %.2f of the rows a second, %.2f times the engine's CPU", rates[last]/rates[0], costs[last]/costs[0])
}

type bigTable struct {
	t      *testing.T
	served *served
	cards  string
	client *tablestore.TableStoreClient
}

// load loads a tenth of the file and returns rows a second and the engine's CPU in µs a row.
func (b *bigTable) load(part int) (rate, cost float64) {
	b.t.Helper()
	piece := filepath.Join(filepath.Dir(b.cards), fmt.Sprintf("part%d.csv", part))
	b.cut(part, piece)
	defer os.Remove(piece)
	before := b.cpu()
	stdout := newPlace(b.t, b.served.env()...).output("load", piece, "--table", "cards", "--create", "--pk", "CardID:integer", "--pk", "DeviceID:integer", "--pk", "OrderNumber:integer", "--json", "--quiet")
	var summary struct {
		Written       int     `json:"written"`
		RowsPerSecond float64 `json:"rows_per_second"`
	}
	if err := json.Unmarshal([]byte(stdout), &summary); err != nil || summary.Written == 0 {
		b.t.Fatalf("part %d: %v in %s", part, err, stdout)
	}
	return summary.RowsPerSecond, (b.cpu() - before) / float64(summary.Written) * 1e6
}

// cut writes a tenth of the file, with its first line.
func (b *bigTable) cut(part int, to string) {
	b.t.Helper()
	in, err := os.Open(b.cards)
	must(b.t, err)
	defer in.Close()
	info, err := in.Stat()
	must(b.t, err)
	header := b.lineAt(in, 0)
	begin := func(part int) int64 {
		if part == bigParts {
			return info.Size()
		}
		at := int64(len(header)) + (info.Size()-int64(len(header)))/bigParts*int64(part)
		if part > 0 {
			at += int64(len(b.lineAt(in, at)))
		}
		return at
	}
	from, end := begin(part), begin(part+1)
	out, err := os.Create(to)
	if err == nil {
		_, err = io.Copy(out, io.MultiReader(bytes.NewReader(header), io.NewSectionReader(in, from, end-from)))
	}
	if err == nil {
		err = out.Close()
	}
	must(b.t, err)
}

// lineAt is the rest of the line at an offset, with its end.
func (b *bigTable) lineAt(f *os.File, at int64) []byte {
	b.t.Helper()
	buf := make([]byte, 4096)
	n, err := f.ReadAt(buf, at)
	end := bytes.IndexByte(buf[:n], '\n')
	if end < 0 {
		b.t.Fatalf("no line at %d: %v", at, err)
	}
	return buf[:end+1]
}

// reads gets rows of the parts up to part, one by one and at random, and returns how long that takes, and the engine's CPU in µs each.
func (b *bigTable) reads(part int) (p50, p99 time.Duration, cost float64) {
	b.t.Helper()
	in, err := os.Open(b.cards)
	must(b.t, err)
	defer in.Close()
	info, err := in.Stat()
	must(b.t, err)
	random := rand.New(rand.NewPCG(uint64(part), 1))
	header := int64(len(b.lineAt(in, 0)))
	loaded := (info.Size() - header) / bigParts * int64(part+1)
	took := make([]time.Duration, *bigReads)
	before := b.cpu()
	for i := range took {
		at := header + random.Int64N(loaded*99/100)
		if at += int64(len(b.lineAt(in, at))); at >= header+loaded {
			b.t.Fatalf("%d is beyond what was loaded", at)
		}
		fields := strings.Split(string(b.lineAt(in, at)), ",")
		key := new(tablestore.PrimaryKey)
		for i, name := range []string{"CardID", "DeviceID", "OrderNumber"} {
			n, err := strconv.ParseInt(fields[[]int{0, 2, 3}[i]], 10, 64)
			must(b.t, err)
			key.AddPrimaryKeyColumn(name, n)
		}
		begun := time.Now()
		r, err := b.client.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{TableName: "cards", PrimaryKey: key, MaxVersion: 1}})
		took[i] = time.Since(begun)
		if err != nil || len(r.Columns) == 0 {
			b.t.Fatalf("row %v: %v, %v", fields, r, err)
		}
	}
	cost = (b.cpu() - before) / float64(len(took)) * 1e6
	slices.Sort(took)
	return took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond), cost
}

// scan reads the whole table and counts its rows.
func (b *bigTable) scan() (rows int) {
	for range rowsOf(b.t, b.client, "cards") {
		rows++
	}
	return rows
}

// cpu is what the engine's process has used, in seconds.
func (b *bigTable) cpu() float64 {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.served.cmd.Process.Pid))
	must(b.t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		b.t.Fatal(err1, err2)
	}
	return (user + system) / 100 // Linux tells programs that a second has 100 ticks
}

func folderBytes(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	must(t, err)
	return sum
}
