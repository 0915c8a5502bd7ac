//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
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

	"example.com/tsimport/internal/conformance"
)

var (
	bigRows  = flag.Int("big-rows", 10_000, "how many rows TestABigTable loads")
	bigReads = flag.Int("big-reads", 20, "how many rows it reads one by one after each part")
)

// TestABigTable loads student cards into one engine by ten processes, reads single rows after each, and then finds
// every row. It prints rows a second end to end and the engine's own CPU for a row, which others disturb less.
func TestABigTable(t *testing.T) {
	const parts = 10
	p, store := newPlace(t), filepath.Join(t.TempDir(), "store")
	p.run(0, "gen", "student-cards", "--rows", strconv.Itoa(*bigRows), "-o", "cards.csv")
	s := startServe(t, "--store", store)
	p.env = s.env()
	cards := conformance.Try(os.Open(p.path("cards.csv"))).Must(t)
	defer cards.Close()
	in, rnd := bufio.NewReaderSize(cards, 1<<20), rand.New(rand.NewPCG(1, 1))
	header := conformance.Try(in.ReadString('\n')).Must(t)
	var keys []*tablestore.PrimaryKey // of some rows that are loaded
	var rates, costs []float64
	t.Logf("%-12s %12s %14s %14s %14s %14s", "rows", "rows/s", "engine µs/row", "read p50", "read p99", "engine µs/read")
	for part := range parts {
		piece, err := os.Create(p.path("part.csv"))
		must(t, err)
		out := bufio.NewWriterSize(piece, 1<<20)
		fmt.Fprint(out, header)
		for i := range *bigRows / parts {
			line := conformance.Try(in.ReadString('\n')).Must(t)
			fmt.Fprint(out, line)
			if i%max(*bigRows/parts / *bigReads, 1) == 0 {
				keys = append(keys, cardKey(t, line))
			}
		}
		must(t, out.Flush())
		must(t, piece.Close())
		before := s.cpu(t)
		stdout := p.output("load", "part.csv", "--table", "cards", "--create", "--pk", "CardID:integer", "--pk",
			"DeviceID:integer", "--pk", "OrderNumber:integer", "--json", "--quiet")
		var summary struct {
			Written       int     `json:"written"`
			RowsPerSecond float64 `json:"rows_per_second"`
		}
		err = json.Unmarshal([]byte(stdout), &summary)
		conformance.MustTrue(t, err == nil && summary.Written == *bigRows/parts, "part %d: %v in %s", part, err, stdout)
		rates, costs = append(rates, summary.RowsPerSecond), append(costs, (s.cpu(t)-before)/float64(summary.Written)*1e6)
		took := make([]time.Duration, *bigReads)
		before = s.cpu(t)
		for i := range took {
			begun := time.Now()
			r, err := s.client().GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
				TableName: "cards", PrimaryKey: keys[rnd.IntN(len(keys))], MaxVersion: 1}})
			took[i] = time.Since(begun)
			conformance.MustTrue(t, err == nil && len(r.Columns) != 0, "%v, %v", r, err)
		}
		read := (s.cpu(t) - before) / float64(len(took)) * 1e6
		slices.Sort(took)
		t.Logf("%-12d %12.0f %14.2f %14v %14v %14.0f", *bigRows*(part+1)/parts, rates[part], costs[part],
			took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond), read)
	}
	begun, before, rows := time.Now(), s.cpu(t), 0
	for range rowsOf(t, s.client(), "cards") {
		rows++
	}
	t.Logf("scan: %d rows, %.0f rows/s, engine %.2f µs/row", rows, float64(rows)/time.Since(begun).Seconds(),
		(s.cpu(t)-before)/float64(rows)*1e6)
	conformance.Equal(t, rows, *bigRows, "the table: rows")
	s.stop(t)
	size := int64(0)
	must(t, filepath.WalkDir(store, func(_ string, entry fs.DirEntry, err error) error {
		must(t, err)
		info := conformance.Try(entry.Info()).Must(t)
		size += info.Size()
		return nil
	}))
	t.Logf("disk: %.0f bytes a row", float64(size)/float64(rows))
	rate, cost := rates[parts-1]/rates[0], costs[parts-1]/costs[0]
	t.Logf("the last tenth against the first: %.2f of the rows a second, %.2f times the engine's CPU", rate, cost)
}

func cardKey(t *testing.T, line string) *tablestore.PrimaryKey {
	fields, key := strings.Split(line, ","), new(tablestore.PrimaryKey)
	for i, name := range []string{"CardID", "DeviceID", "OrderNumber"} {
		n := conformance.Try(strconv.ParseInt(fields[[]int{0, 2, 3}[i]], 10, 64)).Must(t)
		key.AddPrimaryKeyColumn(name, n)
	}
	return key
}

func (s *served) cpu(t *testing.T) float64 {
	t.Helper()
	text := conformance.Try(os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Pid))).Must(t)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	conformance.MustTrue(t, err1 == nil && err2 == nil, "%v %v", err1, err2)
	return (user + system) / 100 // Linux tells programs that a second has 100 ticks
}
