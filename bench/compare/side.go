package compare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"tsimport/bench/result"
)

// Side is one of the two that are compared: one run or several of the same.
type Side struct {
	Name string
	runs []run
}

// run is what is known of one run.
type run struct {
	values map[string]float64 // by metric
	result *result.Result     // nil where only the values are known
}

// maxFile bounds what is read of a file that is not a list of samples.
const maxFile = 256 << 20

// Read reads a side from files with commas between, each a run or, in Go's benchmark format, several.
func Read(files string) (*Side, error) {
	s := &Side{Name: files}
	for _, name := range strings.Split(files, ",") {
		runs, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		s.runs = append(s.runs, runs...)
	}
	return s, nil
}

func readFile(name string) ([]run, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	start, err := in.Peek(1 << 10)
	if len(start) == 0 {
		if err == io.EOF {
			err = errors.New("the file is empty")
		}
		return nil, err
	}
	if start[0] != '{' {
		return readBenchmarks(in)
	}
	if bytes.HasPrefix(start, []byte(`{"format":`)) {
		r, err := result.ReadSamples(in)
		return []run{runOf(r)}, err
	}
	r := new(result.Result)
	d := json.NewDecoder(io.LimitReader(in, maxFile))
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("not a result of tsimport bench write --json: %w", err)
	}
	if r.Every <= 0 || len(r.Points) == 0 {
		return nil, errors.New("not a result of tsimport bench write: it has no measurements over time")
	}
	return []run{runOf(r)}, nil
}

// runOf takes the numbers of a result under the names that they have in Go's benchmark format, times in milliseconds.
func runOf(r *result.Result) run {
	if r == nil {
		return run{}
	}
	v := map[string]float64{"rows/s": r.PerSecond.Rows, "CU/s": r.PerSecond.Units, "B/s": r.PerSecond.Bytes, "throttled/row": r.Totals.ThrottledShare()}
	for i, q := range result.Quantiles {
		if i < len(r.Latency.At) {
			v[quantileMetric(q)] = r.Latency.At[i]
		}
	}
	return run{values: v, result: r}
}

func quantileMetric(q float64) string { return "p" + strconv.FormatFloat(100*q, 'f', -1, 64) + " ms" }

// readBenchmarks reads the lines of Go's benchmark format, a run each.
func readBenchmarks(r io.Reader) (runs []run, err error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxFile))
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if name != "" && fields[0] != name {
			return nil, fmt.Errorf("it holds results of %s and of %s; compare one at a time", name, fields[0])
		}
		name = fields[0]
		v := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			n, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not a number, in a line of %s", fields[i], name)
			}
			unit := fields[i+1]
			if q, ok := strings.CutSuffix(unit, "-ns"); ok {
				unit, n = q+" ms", n/1e6
			}
			v[unit] = n
		}
		delete(v, "ns/op") // rows/s, the other way round
		runs = append(runs, run{values: v})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, errors.New("not a result: want the JSON, the samples or the benchmark lines of tsimport bench write")
	}
	return runs, nil
}
