package commands

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/jobs/job/datax"
)

// maxForeignJob is the size limit of another program's job file, in bytes.
const maxForeignJob = 1 << 20

func convertCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "convert",
		Usage: "convert another program's job file",
		Subcommands: []*cli.Command{{
			Name: "datax",
			Usage: "convert DataX jobs with otswriter and txtfilereader, mysqlreader or otsreader to a job for tsimport run " +
				"(docs/coming-from/datax.md)",
			ArgsUsage: "JOB.json...",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the job to the new `FILE` (default: stdout)"},
			},
			Action: in.act(convertDataX),
		}},
	}
}

func convertDataX(c *call) error {
	if c.NArg() == 0 {
		return usagef("name the DataX jobs: convert datax [-o FILE] JOB.json...")
	}
	to := c.String("output")
	var jobs []*datax.Job
	for _, name := range c.Args().Slice() {
		j, err := readDataX(name)
		if err != nil {
			return err
		}
		jobs = append(jobs, j)
	}
	j := datax.Join(jobs)
	body, err := j.File.Marshal(job.NewVocabulary(), j.Target)
	if err != nil {
		return usagef("%s: %v", strings.Join(c.Args().Slice(), ", "), err)
	}
	var out strings.Builder
	for _, n := range j.Notes {
		fmt.Fprintf(&out, "# %s\n", n)
		c.show.say.Note("%s", n)
	}
	out.Write(body)
	if to == "" || to == "-" {
		_, err = io.WriteString(c.App.Writer, out.String())
		return err
	}
	if err := atomicfile.WriteNew(c.Context, to, 0o644, []byte(out.String())); err != nil {
		return fmt.Errorf("write job: %w", err)
	}
	return nil
}

func readDataX(name string) (*datax.Job, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxForeignJob+1))
	if err != nil {
		return nil, fmt.Errorf("read DataX job: %w", err)
	}
	if len(text) > maxForeignJob {
		return nil, usagef("%s is larger than 1 MiB, too large for a DataX job", name)
	}
	j, err := datax.Convert(text)
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	return j, nil
}
