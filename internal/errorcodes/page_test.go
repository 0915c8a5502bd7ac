package errorcodes

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"example.com/tsimport/internal/exitcode"
)

// page is docs/errors.md.
func page() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, `# Errors

Every code that you can meet, with its cause and what to do. `+"`tsimport errors CODE`"+` prints an entry. This page is made from the
program's catalogue by `+"`make errors`"+`; change it there.
`)
	all := All()
	var codes []string
	for _, c := range exitcode.Order() {
		codes = append(codes, strconv.Itoa(c))
	}
	for _, section := range []struct {
		kind        Kind
		title, text string
		does        bool
	}{
		{Exit, "Exit codes", "A job ends with the first of " + strings.Join(codes, ", ") + " that one of its loads has ended with.", false},
		{Reject, "Why rows are rejected", "The run folder has each rejected record, as it was, and its reason, with file, record, line, column and value, in `rejects.jsonl`.\nA row that the service refused has the service's code.", false},
		{Service, "What the service answers", "Codes of the service, and what a load does with each.", true},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", section.title, section.text)
		if section.does {
			fmt.Fprint(&b, "| code | cause | a load | what to do |\n|---|---|---|---|\n")
		} else {
			fmt.Fprint(&b, "| code | cause | what to do |\n|---|---|---|\n")
		}
		for _, e := range all {
			if e.Kind != section.kind {
				continue
			}
			cells := []string{"`" + e.Code + "`", e.Cause, e.Remedy}
			if section.does {
				cells = []string{"`" + e.Code + "`", e.Cause, e.Does, e.Remedy}
			}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return b.Bytes()
}
