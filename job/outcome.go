package job

import "slices"

// codes are exit codes, the one that a job has before those after it: what must be known first comes first.
var codes = []int{130, 143, 129, 1, 5, 4, 2, 3, 6, 7, 0}

const (
	codeOK      = 0
	codeUsage   = 2
	codeRejects = 3
)

// WorstCode returns the exit code of a job of the codes of its loads.
func WorstCode(all []int) int {
	for _, c := range codes {
		if c != codeOK && slices.Contains(all, c) {
			return c
		}
	}
	for _, c := range all {
		if c != codeOK {
			return c
		}
	}
	return codeOK
}

// wellDone reports whether a load that ended with a code is done: it is not run again, and those after it are run.
func wellDone(code int) bool { return code == codeOK || code == codeRejects }
