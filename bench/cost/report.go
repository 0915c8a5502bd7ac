package cost

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// Load is what one way to load used. CPU is user and system time of its process from start to end.
type Load struct {
	CPUPerRow     float64 `json:"cpu_us_per_row"`
	UserPerRow    float64 `json:"user_us_per_row"`
	CPUPerMB      float64 `json:"cpu_us_per_mb"` // of what travels
	RowsPerSecond float64 `json:"rows_per_second"`
	RowsPerCPU    float64 `json:"rows_per_cpu_second"`
	AllocsPerRow  float64 `json:"allocs_per_row"` // 0 for an external command that does not tell
	PeakRSSBytes  int64   `json:"peak_rss_bytes"`

	AllocBytesPerRow float64 `json:"alloc_bytes_per_row"`
	Seconds          float64 `json:"seconds"`
	Busy             float64 `json:"cores_busy"`   // CPU seconds a second
	Wanted           float64 `json:"cores_wanted"` // the same if nobody else had used any: with the time that threads waited for one; 0 is not known
	Requests         int64   `json:"requests"`
	Connections      int64   `json:"connections"`
	RowsAgain        int64   `json:"rows_again,omitempty"` // that an external command has sent more than once
	OfFloor          float64 `json:"of_floor"`             // CPU, of the floor's sum in the same round
	OfBusyFloor      float64 `json:"of_busy_floor,omitempty"`
}

func measured(p *os.ProcessState, seconds float64, rows uint64) Load {
	cpu := (p.UserTime() + p.SystemTime()).Seconds()
	return Load{
		CPUPerRow: cpu * 1e6 / float64(rows), UserPerRow: p.UserTime().Seconds() * 1e6 / float64(rows),
		RowsPerSecond: float64(rows) / seconds, RowsPerCPU: float64(rows) / cpu,
		Seconds: seconds, Busy: cpu / seconds, PeakRSSBytes: peakRSS(p),
	}
}

// Report is a measurement: of each load the round whose CPU is the median.
type Report struct {
	What             string           `json:"what"`
	Shape            string           `json:"shape"`
	Columns          int              `json:"columns"`
	Rows             uint64           `json:"rows"`
	Floor            Floor            `json:"floor"`
	Loads            map[string]*Load `json:"loads"`
	BestBaseline     string           `json:"best_baseline,omitempty"`
	TimesCheaper     float64          `json:"times_cheaper,omitempty"` // the best baseline's CPU a row, of the tool's
	ServerCPUSeconds float64          `json:"server_cpu_seconds"`

	order []string
}

func (r *Report) finish(floors []Floor, runs map[string][]Load) {
	for name, loads := range runs {
		for i := range loads {
			loads[i].OfFloor = loads[i].CPUPerRow / floors[i].Sum
			if busy := floors[i].Busy; busy > 0 {
				loads[i].OfBusyFloor = loads[i].CPUPerRow / busy
			}
		}
		median := middle(loads, func(l Load) float64 { return l.CPUPerRow })
		median.OfFloor = middle(loads, func(l Load) float64 { return l.OfFloor }).OfFloor
		median.OfBusyFloor = middle(loads, func(l Load) float64 { return l.OfBusyFloor }).OfBusyFloor
		r.Loads[name] = &median
	}
	r.Floor = middle(floors, func(f Floor) float64 { return f.Sum })
	for _, name := range r.order {
		if name != Tool && (r.BestBaseline == "" || r.Loads[name].CPUPerRow < r.Loads[r.BestBaseline].CPUPerRow) {
			r.BestBaseline = name
		}
	}
	for _, l := range r.Loads {
		if mb := r.Floor.travels(r.What) / 1e6; mb > 0 {
			l.CPUPerMB = l.CPUPerRow / mb
		}
	}
	if tool := r.Loads[Tool]; tool != nil && r.BestBaseline != "" {
		r.TimesCheaper = r.Loads[r.BestBaseline].CPUPerRow / tool.CPUPerRow
	}
}

// middle returns the element whose measure is the median.
func middle[T any](all []T, measure func(T) float64) T {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b T) int { return cmp.Compare(measure(a), measure(b)) })
	return sorted[(len(sorted)-1)/2]
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%d rows of %d columns, %.0f bytes of CSV, %.0f on the wire\n\n", r.Rows, r.Columns, r.Floor.CSVBytes, r.Floor.WireBytes)
	fmt.Fprintln(t, "load\tCPU µs/row\tµs/MB\tof floor\tof busy floor\trows/s\tcores busy\twanted\tallocs/row\tpeak MiB\tconnections\t")
	for _, name := range r.order {
		l := r.Loads[name]
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%.3f\t%.0f\t%d\t\n", name, l.CPUPerRow, l.CPUPerMB, l.OfFloor, l.OfBusyFloor, l.RowsPerSecond, l.Busy, l.Wanted, l.AllocsPerRow,
			float64(l.PeakRSSBytes)/(1<<20), l.Connections)
	}
	f := &r.Floor
	fmt.Fprintf(t, "\nfloor, µs a row: encoding/csv %.3f, encoding %.3f, MD5 %.3f; of reading a table: MD5 %.3f, decoding %.3f (%.0f bytes); of %s: %.3f",
		f.CSV, f.Encode, f.MD5, f.AnswerMD5, f.Decode, f.AnswerBytes, r.What, f.Sum)
	if f.Busy > 0 {
		fmt.Fprintf(t, ", %.3f while every processor does the same", f.Busy)
	}
	fmt.Fprintln(t)
	if r.TimesCheaper > 0 {
		fmt.Fprintf(t, "%s takes %.1f times the CPU of %s\n", r.BestBaseline, r.TimesCheaper, Tool)
	}
	return t.Flush()
}
