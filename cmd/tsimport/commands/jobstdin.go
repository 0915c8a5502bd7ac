package commands

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/keep"
)

// shareStdin gives each load that reads standard input its own pipe, which the load must close when it ends.
func (o *jobRunner) shareStdin(stdin io.Reader) error {
	var to []*io.PipeWriter
	o.ends = map[string]*io.PipeReader{}
	for _, s := range o.record.StdinReaders() {
		r, w := io.Pipe()
		o.ends[s.Name], to = r, append(to, w)
	}
	o.beginStdin = sync.OnceFunc(func() { go handOut(stdin, to) })
	if again := o.stdinAgain(); again != "" {
		return usagef("standard input cannot be read again; to start over the loads that read it, %s", again)
	}
	return o.checkPipes()
}

// checkPipes refuses loads that read one named pipe concurrently, because each would get only a part of the data.
func (o *jobRunner) checkPipes() error {
	readers := map[string]string{}
	for _, s := range o.record.Loads {
		for _, from := range s.From {
			other := readers[from]
			if other != "" && o.record.Parallel > 1 && !o.record.ComesAfter(s.Name, other) &&
				!o.record.ComesAfter(other, s.Name) {
				return usagef("loads %s and %s read the pipe %s, and each would get only a part; if it carries changes, write "+
					"from: \"-\" and connect the pipe to standard input", other, s.Name, from)
			}
			if from != "-" && keep.IsStream(from) {
				readers[from] = s.Name
			}
		}
	}
	return nil
}

// handOut copies the input to all pipes, at the pace of the slowest, until the input ends or all pipes are closed.
func handOut(from io.Reader, to []*io.PipeWriter) {
	buffer := make([]byte, 64<<10)
	for len(to) > 0 {
		n, err := from.Read(buffer)
		to = slices.DeleteFunc(to, func(w *io.PipeWriter) bool {
			var left error
			if n > 0 { // even an empty write would wait for the reader
				_, left = w.Write(buffer[:n])
			}
			if err != nil {
				_ = w.CloseWithError(err) // never fails
			}
			return left != nil || err != nil
		})
	}
}

// noteStdin records the earliest place from which loads that read standard input need changes, if all know theirs.
func (o *jobRunner) noteStdin() {
	o.record.ResumeFrom = nil
	for i, s := range o.record.StdinReaders() {
		sum, err := readSummary(filepath.Join(o.folder, s.Name))
		if err != nil || sum.ResumeFrom == nil {
			o.record.ResumeFrom = nil
			return
		}
		if i == 0 || sum.ResumeFrom.Before(o.record.ResumeFrom) {
			o.record.ResumeFrom = sum.ResumeFrom
		}
	}
}

// stdinAgain returns how to repeat changes for loads that read standard input, or "" if all are done or none began.
func (o *jobRunner) stdinAgain() string {
	var names []string
	done, waiting := 0, 0
	for _, s := range o.record.StdinReaders() {
		names = append(names, s.Name)
		switch s.State {
		case job.Done:
			done++
		case job.Waiting, job.Held:
			waiting++
		}
	}
	if max(done, waiting) == len(names) {
		return ""
	}
	from := "their beginning"
	if o.noteStdin(); o.record.ResumeFrom != nil {
		from = o.record.ResumeFrom.String() + " or before"
	}
	return fmt.Sprintf("give the changes from %s: %s run %s --fresh %s", from, commandName(), suggest.Arg(o.record.File),
		strings.Join(names, " "))
}
