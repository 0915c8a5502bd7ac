//go:build e2e && linux

package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	varint "encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// everyMemoryFile runs the memory tests with all files instead of a sample, which takes minutes longer.
var everyMemoryFile = flag.Bool("every-memory-file", false, "measure the memory that every hostile file takes")

// tries is the number of attempts that a command has to keep its limit, because a busy machine collects garbage late.
const tries = 3

// measuring is set in a copy of this binary that runs one command, because a process's peak includes its parent's.
const measuring = "TSIMPORT_E2E_MEASURE"

// addressSpace is more than any command maps, but less than a machine can spare.
const addressSpace = 4 << 30

func init() {
	if os.Getenv(measuring) != "" {
		os.Exit(measure())
	}
}

// measure runs the command in the arguments with a hard limit, writes its peak to file 3 and returns its exit code.
func measure() int {
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: addressSpace, Max: addressSpace}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	os.Unsetenv(measuring)
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	fmt.Fprint(os.NewFile(3, "peak"), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) // KiB, as VmHWM
	return cmd.ProcessState.ExitCode()
}

// measured runs a command in the place, for at most processTimeout, and returns its peak memory in bytes.
func (p *place) measured(args ...string) (peak int64, code int, out string) {
	p.t.Helper()
	self := conformance.Try(os.Executable()).Must(p.t)
	r, w, err := os.Pipe()
	must(p.t, err)
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), processTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{binary}, args...)...)
	cmd.Dir, cmd.Env = p.dir, append(append(os.Environ(), p.env...), measuring+"=1", "GOGC=") // as users run it
	cmd.ExtraFiles = []*os.File{w}
	text, err := cmd.CombinedOutput()
	w.Close()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	var number [32]byte
	n, _ := r.Read(number[:]) // empty if the process was killed
	kib, err := strconv.ParseInt(strings.TrimSpace(string(number[:n])), 10, 64)
	if err != nil {
		p.t.Fatalf("%v gave no peak (%v):\n%.2000s", args, ctx.Err(), text)
	}
	return kib << 10, cmd.ProcessState.ExitCode(), string(text)
}

// beside returns the limit for a command with memory MiB, which includes the program and the runtime. Kernels count
// different shares of the program's file as memory; idle is the peak of a command that does almost nothing.
func beside(idle, memory int64) int64 { return memory<<20 + max(64<<20, idle+8<<20) }

// within is like measured, and checks that the command takes at most most bytes. It calls again before each try.
func (p *place) within(most int64, again func(), args ...string) (code int, out string) {
	p.t.Helper()
	var peak int64
	for range tries {
		again()
		peak, code, out = p.measured(args...)
		if p.t.Logf("%s: peak %d MiB, exit code %d", args[0], peak>>20, code); peak <= most {
			return code, out
		}
	}
	p.t.Errorf("%v: a peak of %d MiB, %d times, want at most %d", args, peak>>20, tries, most>>20)
	return code, out
}

// TestCommandsStayWithinTheirMemory loads files that would take much more memory if any part were held without a limit,
// and runs other commands on some of them. The table is on a server in a separate process.
func TestCommandsStayWithinTheirMemory(t *testing.T) {
	s := startServe(t, "--memory")
	p := newPlace(t, s.env()...)
	p.write("small.csv", "id,v\n1,x\n")
	target := []string{"--table", "t", "--pk", "id:integer"}
	load := append([]string{"load", "--create", "--run-dir", "run", "--max-errors", "-1"}, target...)
	idle, _, _ := p.measured(append(load, "small.csv", "--memory", "16MiB")...)
	t.Logf("one row takes %d MiB", idle>>20)
	const three, two = "inspect-count advise check", "inspect-count check"
	const all = "inspect verify " + three
	for _, test := range []struct {
		name, file        string
		write             func(io.Writer)
		memory            int64 // MiB; 0 means 64
		code              int
		written, rejected int64
		says              string // text in the errors and messages
		others            string // other commands to run on the file
	}{
		{"80 values of 1 MB", "a.parquet", func(w io.Writer) { writeValues(w, 80, 1<<20, true) }, 0, 0, 80, 0, "", all},
		{"100 rows of 8 MiB", "a.parquet", func(w io.Writer) { writeValues(w, 100, 8<<20, false) }, 0, 3, 0, 100, "", all},
		{"one dictionary value of 60 MiB for 100 rows", "a.parquet", func(w io.Writer) { writeValues(w, 100, 60<<20, false) },
			0, 1, 0, 0, "give more with --memory", ""},
		{"a list of 60 equal values", "a.parquet", writeList, 0, 3, 0, 1, "", ""},
		{"60 columns with a value of 1 MiB each", "a.parquet", writeWide, 256, 3, 0, 40, "", ""},
		{"120 values of 1 MB in CSV", "a.csv", func(w io.Writer) { writeText(w, 120, 1<<20, "%d,%s\n", "id,v\n") }, 0, 0, 120,
			0, "", three},
		{"120 values of 1 MB in JSON lines", "a.jsonl",
			func(w io.Writer) { writeText(w, 120, 1<<20, `{"id":%d,"v":"%s"}`+"\n", "") }, 0, 0, 120, 0, "", ""},
		{"40 of 3 MB", "a.csv", func(w io.Writer) { writeText(w, 40, 3<<20, "%d,%s\n", "id,v\n") }, 0, 3, 0, 40, "", ""},
		{"an endless record in CSV", "a.csv", func(w io.Writer) { writeEndless(w, "id,v\n1,x\n2,\"") }, 0, 2, 1, 0,
			"close its quote, or use", ""},
		{"endless CSV", "a.csv", func(w io.Writer) { writeEndless(w, "id,v\n1,x\n2,") }, 0, 3, 1, 1, "above 8 MiB", ""},
		{"least memory", "a.csv", func(w io.Writer) { writeEndless(w, "id,v\n1,x\n2,") }, 16, 3, 1, 1, "above 6 MiB", ""},
		{"a long line of JSON between others", "a.jsonl", func(w io.Writer) {
			writeEndless(w, "{\"id\":1,\"v\":\"x\"}\n{\"id\":2,\"v\":\"")
			io.WriteString(w, "\"}\n{\"id\":3,\"v\":\"x\"}\n")
		}, 0, 3, 2, 1, "above 8 MiB", three},
		{"endless gz", "a.csv.gz", func(w io.Writer) { writePacked(gzip.NewWriter(w)) }, 0, 3, 1, 1, "above 8 MiB", all},
		{"an endless line in zstd", "a.csv.zst", func(w io.Writer) { z, _ := zstd.NewWriter(w); writePacked(z) }, 0, 3, 1, 1,
			"above 8 MiB", ""},
		{"endless lz4", "a.csv.lz4", func(w io.Writer) { writePacked(lz4.NewWriter(w)) }, 0, 3, 1, 1, "above 8 MiB", two},
		{"an endless line in bzip2", "a.csv.bz2", members(bzip2Head, bzip2Member, 10), 0, 3, 1, 1, "above 8 MiB", two},
		{"an endless line in xz", "a.csv.xz", members(xzHead, xzMember, 80), 0, 3, 1, 1, "above 8 MiB", two},
		{"a window of 512 MiB", "a.csv.xz", members(xzWindow, "", 0), 0, 2, 0, 0, "takes a window of more than 8 MiB", three},
		{"a record of nothing but delimiters", "a.csv", func(w io.Writer) {
			fmt.Fprintf(w, "id,v\n1,x\n%s\n2,x\n", strings.Repeat(",", 7<<20))
		}, 0, 3, 2, 1, "", ""},
		{"rejected records of two bytes", "a.csv",
			func(w io.Writer) { fmt.Fprintf(w, "id,v\n%s", strings.Repeat("x\n", 100_000)) }, 0, 3, 0, 100_000, "", ""},
		{"a page that says it is 2 GiB long", "a.parquet", func(w io.Writer) { writeLie(w, 130<<20, 1<<31-1) }, 0, 1, 0, 0,
			"give more with --memory", three},
		{"a page that says it is 1 MiB long and is 60", "a.parquet", func(w io.Writer) { writeLie(w, 60<<20, 1<<20) }, 0, 2,
			0, 0, "decompressed size exceeds", three},
		{"1000 columns", "a.csv", func(w io.Writer) { writeColumns(w, 3000) }, 0, 0, 3000, 0, "", three},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !*everyMemoryFile && test.file != "a.csv.gz" && test.memory != 16 && test.rejected != 100 {
				t.Skip("measured by make memory")
			}
			p := newPlace(t, p.env...)
			f := conformance.Try(os.Create(p.path(test.file))).Must(t)
			test.write(f)
			must(t, f.Close())
			memory := cmp.Or(test.memory, 64)
			again := func() { must(t, os.RemoveAll(p.path("run"))) }
			code, out := p.within(beside(idle, memory), again,
				append(load, test.file, "--memory", fmt.Sprintf("%dMiB", memory))...)
			var summary struct{ Rejected, Written int64 }
			report, err := os.ReadFile(p.path("run/summary.json"))
			if err == nil {
				must(t, json.Unmarshal(report, &summary))
			} else if code == 0 || !errors.Is(err, fs.ErrNotExist) { // otherwise the load was refused before the run began
				t.Fatalf("%v in:\n%.2000s", err, out)
			}
			conformance.True(t, code == test.code && strings.Contains(out, test.says) && summary.Written == test.written &&
				summary.Rejected == test.rejected, "exit code %d, %d written, %d rejected; want %d, %d, %d and %q in:\n%.2000s",
				code, summary.Written, summary.Rejected, test.code, test.written, test.rejected, test.says, out)
			for _, name := range strings.Fields(test.others) {
				args := []string{name, test.file, "--memory", "64MiB", "--json"}
				switch name {
				case "inspect-count":
					args = append([]string{"inspect", "--count"}, args[1:]...)
				case "check":
					args = append(args, "--pk", "id:integer", "--unique")
				case "verify":
					args = append(args, target...)
				}
				// verify may find differences (code 6). The other commands end with at most 3 on a damaged file.
				code, out := p.within(beside(idle, 64), func() {}, args...)
				conformance.True(t, (code <= 3 || name == "verify" && code == 6) && !strings.Contains(out, "goroutine "),
					"%s: exit code %d:\n%.2000s", name, code, out)
			}
		})
	}
}

// A job directory collects the rejected records of all processes, so they must not be held in memory.
func TestJobOfRejectsStaysWithinItsMemory(t *testing.T) {
	records := 10_000 // all must be there afterwards; make memory measures more
	if *everyMemoryFile {
		records = 1_000_000
	}
	p := newPlace(t, startServe(t, "--sync", "none").env()...)
	what := strings.Repeat("a record that is rejected ", 10)
	want := fileOf("id,n,what", records, func(n int) string { return fmt.Sprintf("%d,x,%s", n, what) })
	p.run(0, "load", p.write("in.csv", want), "--table", "t", "--create", "--pk", "id:integer", "--type", "n=integer",
		"--max-errors", "-1", "--job-dir", "job", "--memory", "64MiB", "--quiet")
	idle, _, _ := p.measured("work", "--help")
	peak, code, out := p.measured("work", "--job-dir", "job", "--memory", "64MiB", "--quiet")
	conformance.MustTrue(t, code == 3 && peak <= beside(idle, 64),
		"exit code %d with a peak of %d MiB; --help takes %d\n%s", code, peak>>20, idle>>20, out)
	t.Logf("%d rejected records: peak %d MiB", records, peak>>20)
	conformance.Equal(t, p.read("job/rejects.csv"), want, "rejects.csv is not what was rejected")
}

// Members of compressed files: 8 MiB of the letter x in bzip2, 1 MiB in xz. Both formats allow any number of members.
const (
	bzip2Member = "QlpoOTFBWSZTWZJXf78AQEAAgIBEAAggADDMBSmmAQDYgIB4u5IpwoSEkrv9+A=="
	xzMember    = "/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj7///ANldADxv+7/+o7Fe5fg/sqomVfhocEFwFQ+N/R5MG4pCtxn0aRhxrmYjiopNL6MN2X+m44wjEVPgWRjFdYrid/i2lH8MasDedElk4ulcU7IE2PdEDKtfDW1G6eXDdoi3llestk3haR1v+0uIEGxCy4g/XACP0E6vJiiUcR89jyThcJ6nI1/sKMuF0ZWYin4qkfIndfcZwAaYTZj92K/VkA/EJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1Iq9+SVJQAAAAAAMpw7FQAB8QGAgEAAb9Xu3D4wDYsCAAAAAAFZWg=="
	// The heads contain "id,v\n1,x\n2,".
	bzip2Head = "QlpoOTFBWSZTWZPAe4gAAARZgAAQAAQwAAQgAUAgADEMCCAzSEYOpL8XckU4UJCTwHuI"
	xzHead    = "/Td6WFoAAAFpIt42AgAhARYAAAB0L+WjAQAKaWQsdgoxLHgKMiwAAI8oO4UAAR8LPWIOepBCmQ0BAAAAAAFZWg=="
	// xzWindow needs a window of 512 MiB.
	xzWindow = "/Td6WFoAAAFpIt42AgAhASIAAACCQKzcAQAIaWQsdgoxLHgKAAAAACUSTaMAAR0Jk2E2ppBCmQ0BAAAAAAFZWg=="
)

func members(head, member string, n int) func(io.Writer) {
	return func(w io.Writer) {
		for _, text := range append([]string{head}, slices.Repeat([]string{member}, n)...) {
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				panic(err)
			}
			w.Write(data)
		}
	}
}

func writePacked(z io.WriteCloser) {
	writeEndless(z, "id,v\n1,x\n2,")
	z.Close()
}

// writeLie writes a row with a value of n bytes in a page whose header states another uncompressed size.
func writeLie(w io.Writer, n, other int) {
	var b bytes.Buffer
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Encoded(parquet.String(), &parquet.Plain)}
	p := parquet.NewWriter(&b, parquet.NewSchema("lie", group), parquet.Compression(&pzstd.Codec{}),
		parquet.SkipPageBounds("v"), parquet.DataPageStatistics(false))
	p.WriteRows([]parquet.Row{{parquet.Int64Value(1).Level(0, 0, 0),
		parquet.ByteArrayValue(bytes.Repeat([]byte("l"), n)).Level(0, 0, 1)}})
	p.Close()
	// The header's fields 1 and 2: the type, and the length as a varint of Thrift's compact protocol.
	head := func(n int) []byte { return varint.AppendVarint([]byte{0x15}, int64(n)) }
	from, to := head(n+4), head(other)
	if len(from) != len(to) || bytes.Count(b.Bytes(), from) == 0 {
		panic(fmt.Sprintf("no length %d in the file", n))
	}
	w.Write(bytes.Replace(b.Bytes(), from, to, 1))
}

// writeValues writes rows with a value of n bytes, which differs in every row or is a single dictionary entry.
func writeValues(w io.Writer, rows, n int, differ bool) {
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Encoded(parquet.String(),
		&parquet.RLEDictionary)}
	options := []parquet.WriterOption{parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"),
		parquet.DataPageStatistics(false)}
	if differ {
		group["v"], options = parquet.Encoded(parquet.String(), &parquet.Plain), options[1:]
	}
	p := parquet.NewWriter(w, append(options, parquet.NewSchema("values", group))...)
	v := parquet.ByteArrayValue(bytes.Repeat([]byte("a"), n)).Level(0, 0, 1)
	for i := range rows {
		if differ {
			v = parquet.ByteArrayValue([]byte(randomText(n))).Level(0, 0, 1)
		}
		p.WriteRows([]parquet.Row{{parquet.Int64Value(int64(i)).Level(0, 0, 0), v}})
		if differ && i%10 == 9 {
			p.Flush()
		}
	}
	p.Close()
}

func writeList(w io.Writer) {
	schema := parquet.NewSchema("list", parquet.Group{
		"id": parquet.Leaf(parquet.Int64Type), "v": parquet.Repeated(parquet.Encoded(parquet.String(),
			&parquet.RLEDictionary)),
	})
	p := parquet.NewWriter(w, schema, parquet.Compression(&pzstd.Codec{}), parquet.SkipPageBounds("v"),
		parquet.DataPageStatistics(false))
	row := parquet.Row{parquet.Int64Value(1).Level(0, 0, 0)}
	text := bytes.Repeat([]byte("b"), 2<<20)
	for i := range 60 {
		row = append(row, parquet.ByteArrayValue(text).Level(min(i, 1), 1, 1))
	}
	p.WriteRows([]parquet.Row{row})
	p.Close()
}

func writeWide(w io.Writer) {
	group := parquet.Group{"id": parquet.Leaf(parquet.Int64Type)}
	options := []parquet.WriterOption{parquet.Compression(&pzstd.Codec{}), parquet.DataPageStatistics(false)}
	for c := range 60 {
		name := fmt.Sprintf("v%02d", c)
		group[name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		options = append(options, parquet.SkipPageBounds(name))
	}
	p := parquet.NewWriter(w, append(options, parquet.NewSchema("wide", group))...)
	v := parquet.ByteArrayValue(bytes.Repeat([]byte("c"), 1<<20))
	for i := range 40 {
		row := parquet.Row{parquet.Int64Value(int64(i)).Level(0, 0, 0)}
		for c := range 60 {
			row = append(row, v.Level(0, 0, c+1))
		}
		p.WriteRows([]parquet.Row{row})
	}
	p.Close()
}

func writeText(w io.Writer, rows, n int, format, header string) {
	io.WriteString(w, header)
	text := randomText(n)
	for i := range rows {
		fmt.Fprintf(w, format, i, text)
	}
}

func writeEndless(w io.Writer, begin string) {
	io.WriteString(w, begin)
	for range 80 {
		io.WriteString(w, strings.Repeat("endless ", 1<<17))
	}
}

func writeColumns(w io.Writer, rows int) {
	io.WriteString(w, "id")
	for i := range 1000 {
		fmt.Fprintf(w, ",a_column_with_a_long_name_%d", i)
	}
	for i := range rows {
		fmt.Fprintf(w, "\n%d%s", i, strings.Repeat(",7", 1000))
	}
	io.WriteString(w, "\n")
}

func randomText(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

var (
	bigRows  = flag.Int("big-rows", 10_000, "how many rows TestBigTable loads")
	bigReads = flag.Int("big-reads", 20, "how many rows it reads one by one after each part")
)

// TestBigTable loads student cards into one engine by ten processes in turn, reads single rows after each, and finally
// scans all rows. It prints rows per second end to end, and the engine's CPU per row.
func TestBigTable(t *testing.T) {
	const parts = 10
	p, store := newPlace(t), filepath.Join(t.TempDir(), "store")
	p.run(0, "gen", "student-cards", "--rows", strconv.Itoa(*bigRows), "-o", "cards.csv")
	s := startServe(t, "--store", store)
	p.env = s.env()
	cards := conformance.Try(os.Open(p.path("cards.csv"))).Must(t)
	defer cards.Close()
	in, rnd := bufio.NewReaderSize(cards, 1<<20), rand.New(rand.NewPCG(1, 1))
	header := conformance.Try(in.ReadString('\n')).Must(t)
	var keys []*tablestore.PrimaryKey // keys of some loaded rows
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
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // fields from the third on
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	conformance.MustTrue(t, err1 == nil && err2 == nil, "%v %v", err1, err2)
	return (user + system) / 100 // Linux reports 100 ticks per second
}
