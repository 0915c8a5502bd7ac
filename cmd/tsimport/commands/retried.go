package commands

import (
	"os"
	"path/filepath"
	"slices"

	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/transfer/verify"
)

// addRetried adds to a comparison with what a run has loaded the files of the runs that have loaded its rejects, after its own
// inputs: their rows are not surplus. Without are the runs whose files are to be read in another way than the run's inputs.
func addRetried(v *verify.Config, run *rundir.Run) (without []string) {
	own, err := commandOf(run.Request, run.Arguments)
	alike := err == nil && v.Request.Read.Sources == nil && run.RejectsEncoding == "" && (len(run.RejectsFlags) == 0 || slices.Equal(run.RejectsFlags, csv.Default.Flags())) &&
		!slices.ContainsFunc(append(slices.Clone(options.DialectFlags), "format", "encoding", "skip-lines", "limit"), own.IsSet)
	request := *v.Request
	request.Inputs = slices.Clone(request.Inputs)
	rejected := rundir.Rejected{}
	for name, records := range v.Rejected {
		rejected[name] = records
	}
	for queue := slices.Clone(run.Retried); len(queue) > 0; queue = queue[1:] {
		by, err := rundir.ReadRun(queue[0])
		if err != nil || !alike || !sameRows(by) {
			without = append(without, queue[0])
			continue
		}
		for _, name := range by.Inputs {
			at := name
			if !filepath.IsAbs(at) {
				at = filepath.Join(by.Directory, name)
			}
			if here, err := os.Getwd(); err == nil && filepath.Clean(here) == filepath.Clean(by.Directory) {
				at = name
			}
			request.Inputs = append(request.Inputs, at)
			if records := by.Rejected[name]; len(records) > 0 {
				rejected[at] = records
			}
		}
		queue = append(queue, by.Retried...)
	}
	v.Request, v.Rejected = &request, rejected
	return without
}

// sameRows reports whether a load of rejects has no options that change its rows.
func sameRows(run *rundir.Run) bool {
	load, err := commandOf(run.Request, run.Arguments)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(options.OfCommand(load.Name), func(o *options.Option) bool {
		return load.IsSet(o.Name) && !o.MayChange
	})
}
