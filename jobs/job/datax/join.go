package datax

import (
	"slices"

	"example.com/tsimport/jobs/job"
)

// Join makes one job of several. Where they go to different instances, each load says where it goes.
func Join(jobs []*Job) *Job {
	one := *jobs[0]
	one.File = &job.File{}
	same := true
	for _, j := range jobs {
		same = same && slices.EqualFunc(j.Target, one.Target, func(a, b job.Setting) bool { return a.Key == b.Key && slices.Equal(a.Values, b.Values) })
	}
	if !same {
		one.Target = nil
	}
	for i, j := range jobs {
		for _, l := range j.File.Loads {
			if !same {
				l.Settings = append(slices.Clone(j.Target), l.Settings...)
			}
			// A load of another job may be into a table of this name, and so may be one of another instance.
			if table := l.Value("table"); table != "" {
				l.Name = table
				l.Settings = slices.DeleteFunc(slices.Clone(l.Settings), func(s job.Setting) bool { return s.Key == "table" })
			}
			one.add(l)
		}
		if i > 0 {
			for _, n := range j.Notes {
				one.note(n)
			}
		}
	}
	return &one
}
