package commands

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/jobs/job"
)

// jobVocabulary is the keys of a job file.
func jobVocabulary() *job.Vocabulary {
	gone := map[string]string{}
	for _, g := range goneFlags {
		if g.of == "" && g.value == "" {
			gone[g.name] = "it is gone: " + g.instead
		}
	}
	return job.NewVocabulary(gone)
}

// valuesOf are the texts of a flag that is set, one for each time.
func valuesOf(c *cli.Context, f cli.Flag) []string {
	name := f.Names()[0]
	if repeatable(f) {
		return textsOf(c, name)
	}
	return []string{fmt.Sprint(c.Value(name))}
}
