package scaleout

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"time"

	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
)

// Outlook is the input of a forecast: the measured load and the processes that share it.
type Outlook struct {
	Bytes    int64   // of the inputs
	Rows     int64   // written rows
	RowBytes float64 // average row size as the service counts it
	Units    int64   // total write units
	Looked   bool    // planning scans the inputs, which are text, for ends of records
	Direct   bool    // as Plan.Direct
	Unique   bool    // as Plan.Unique

	Workers    int
	Processors int   // of each worker
	Memory     int64 // bytes, of each worker
	Rates      lanes.Rates
}

// Look computes the outlook of a load by many processes, except their number. It changes nothing.
func Look(ctx context.Context, cfg *pipeline.Config) (*Outlook, error) {
	if err := Check(cfg); err != nil {
		return nil, err
	}
	v, err := pipeline.Look(ctx, *cfg, 0)
	if err != nil {
		return nil, err
	}
	if v.Rows < 0 || v.Bytes < 0 {
		return nil, plan.Usagef("--plan: the number of rows or bytes in the inputs is unknown until they are read")
	}
	o := &Outlook{
		Bytes: v.Bytes, Rows: v.Rows, RowBytes: v.Sample.RowBytes, Looked: v.Through, Direct: writtenAsRead(cfg),
		Processors: runtime.GOMAXPROCS(0), Memory: cmp.Or(cfg.Limits.Memory, pipeline.DefaultMemory), Rates: cfg.Lanes.Rates,
		Units: int64(math.Ceil(float64(v.Rows) * v.Sample.RowUnits)),
	}
	o.Unique = !o.Direct && !cfg.Compared && (cfg.Write.Order == plan.OrderNone || v.Distinct)
	return o, nil
}

type Step struct {
	Name     string  `json:"name"`
	Tasks    int64   `json:"tasks"`
	Bytes    int64   `json:"bytes"`    // read and written, in the inputs and the job directory
	Requests int64   `json:"requests"` // to the job directory
	Seconds  float64 `json:"seconds"`
	Memory   int64   `json:"memory_bytes"` // of each worker
}

// Costs, measured with rows of 12 columns and 109 bytes (docs/internals/scale-out.md).
const (
	lookCPU       = 2.5e-9 // seconds per byte of the inputs
	readCPU       = 26e-9  // seconds per byte
	directCPU     = 91e-9
	writeCPU      = 45e-9
	unreducedCPU  = 32e-9
	runShare      = 0.87
	reducedShare  = 0.93
	storeAnswers  = 30 * time.Millisecond
	resultBytes   = 768 // memory for the result of a split
	renewalsEvery = 5.0 // seconds
)

// Forecast estimates the steps of a job that only processors, the job directory and ceilings limit.
func Forecast(o *Outlook) []Step {
	workers, processors := max(o.Workers, 1), float64(max(o.Processors, 1)*max(o.Workers, 1))
	size := splitSize(o.Bytes, workers, 0)
	splits := max(1, (o.Bytes+size-1)/size)
	all := float64(o.Rows) * o.RowBytes
	objects := func(bytes float64, of int64) int64 { return max(of, int64(math.Ceil(bytes/(32<<20)))) }
	waiting := func(requests int64, atATime int) float64 {
		return float64(requests) * storeAnswers.Seconds() / float64(atATime*workers)
	}
	ceiling := func(seconds float64) float64 {
		for _, at := range []struct{ rate, all float64 }{{o.Rates.MaxWCU, float64(o.Units)},
			{o.Rates.MaxRows, float64(o.Rows)}, {o.Rates.MaxBytes, all}} {
			if at.rate > 0 {
				seconds = max(seconds, at.all/at.rate)
			}
		}
		return seconds
	}
	planning := Step{Name: "plan", Tasks: 1, Requests: 2, Memory: o.Memory}
	if o.Looked {
		planning.Bytes, planning.Seconds = o.Bytes, float64(o.Bytes)*lookCPU/float64(max(o.Processors, 1))
	}
	read := Step{Name: "read", Tasks: splits, Bytes: o.Bytes, Memory: o.Memory}
	if o.Direct {
		read.Requests = 4 * splits
		read.Seconds = ceiling(max(all*directCPU/processors, waiting(read.Requests, 1)))
		read.Requests += int64(read.Seconds/renewalsEvery) * int64(workers)
		return []Step{planning, read, finishing(splits, 0, o.Memory, waiting)}
	}
	runs := all * runShare
	read.Bytes += int64(runs)
	read.Requests = 5*splits + objects(runs, splits)
	read.Seconds = max(all*readCPU/processors, waiting(read.Requests, 1))
	read.Requests += int64(read.Seconds/renewalsEvery) * int64(workers)

	shards := int64(min(workers*shardsEach, mostShards))
	write := Step{Name: "write", Tasks: shards, Bytes: int64(runs), Memory: o.Memory + resultBytes*splits}
	write.Requests = 2*splits*shards + splits*int64(workers)
	cpu := unreducedCPU
	if !o.Unique {
		reduced := all * reducedShare
		write.Bytes += int64(2 * reduced)
		write.Requests += 2 * objects(reduced, shards)
		cpu = writeCPU
	}
	write.Seconds = ceiling(max(all*cpu/processors, waiting(write.Requests, readsAtATime)))
	write.Requests += int64(write.Seconds/renewalsEvery) * int64(workers*shardsEach) * 2 // leases and checkpoints
	return []Step{planning, read, write, finishing(splits, shards, o.Memory, waiting)}
}

func finishing(splits, shards, memory int64, waiting func(int64, int) float64) Step {
	n := splits + shards
	return Step{Name: "finish", Tasks: 1, Requests: n, Seconds: waiting(n, readsAtATime),
		Memory: memory + resultBytes*splits}
}
