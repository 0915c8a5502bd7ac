package errorcodes

import (
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
)

type Kind string

// The kinds of codes, in the order in which All lists them.
const (
	Exit    Kind = "exit code"        // exit code of a command
	Reject  Kind = "reject reason"    // reason for rejecting a row that was not sent, or for which no response came
	Service Kind = "service's answer" // error code for a request or a row
)

type Entry struct {
	Code   string `json:"code"`
	Kind   Kind   `json:"kind"`
	Cause  string `json:"cause"`
	Does   string `json:"does,omitempty"` // how a load reacts
	Remedy string `json:"remedy"`
}

// All returns every entry, sorted by kind, then exit codes by number and other codes by name.
func All() []Entry {
	all := slices.Concat(exits, rejects)
	for _, e := range answers {
		e.Does = does(e.Code)
		all = append(all, e)
	}
	order := []Kind{Exit, Reject, Service}
	slices.SortStableFunc(all, func(a, b Entry) int {
		if d := slices.Index(order, a.Kind) - slices.Index(order, b.Kind); d != 0 || a.Kind == Exit {
			return d
		}
		return strings.Compare(a.Code, b.Code)
	})
	return all
}

// Find returns a code's entry. It ignores the case of the code.
func Find(code string) (e Entry, found bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return strings.EqualFold(e.Code, code) })
	if i < 0 {
		return e, false
	}
	return all[i], true
}

// does describes a load's reaction to a code of the service, by its class in package client.
func does(code string) string {
	text := map[client.Class]string{
		client.Permanent:    "rejects the row, which was not written",
		client.Throttled:    "sends the row again and sends less to its partition",
		client.Unavailable:  "sends the row again when the partition or table serves",
		client.Ambiguous:    "sends the row again; one that may not be applied twice only after looking it up",
		client.Content:      "sends the rows of the request one by one, and rejects those that are refused again",
		client.Fatal:        "stops, exit code 5; it can be resumed",
		client.Unrecognized: "sends the row again; one that may not be applied twice only after looking it up",
	}[client.ClassifyCode(code, "")]
	switch {
	case code == "OTSRequestBodyTooLarge":
		return "sends the rows in smaller requests, and rejects a row that is refused alone"
	case code == "OTSForbiddenUpdateCapacityUnit" || code == "OTSObjectAlreadyExist": // only for tables
		return "stops before any row, exit code 1"
	case code == "OTSTooFrequentReservedThroughputAdjustment":
		return "waits and then tries to change the throughput once more"
	case client.InstanceThrottled(code):
		return "sends the row again and sends less to all partitions"
	}
	return text
}

var exits = []Entry{
	exit(exitcode.OK, "done: every row is written and nothing differs", "nothing"),
	exit(exitcode.Failed, "the command stopped before its end: a fault of this machine, the network or the service, a "+
		"file that changed, too many bad files with --only-new, or --timeout", "give the same command again: a load resumes"),
	exit(exitcode.Usage, "a wrong flag or configuration, or an input not as stated", "correct what the message names"),
	exit(exitcode.Rejects, "finished, but some rows were rejected, files were set aside (--only-new), or a sync "+
		"withheld its deletes", "correct the rejected rows in the run folder, then tsimport load --retry-rejects FOLDER; "+
		"of a file that was cut, load a new delivery instead (after --only-new, with --reload-changed); tsimport files "+
		"--state bad lists files that were set aside"),
	exit(exitcode.ErrorLimit, "more rows were rejected than --max-errors allows",
		"see the reasons in the run folder; resume with a higher --max-errors, or correct the input or the types "+
			"and add --fresh"),
	exit(exitcode.Refused, "refused permanently: the access key, a permission, a table that is gone or was replaced, a "+
		"quota, a certificate that is not trusted",
		"correct the account or the table, then give the same command again: a load resumes"),
	exit(exitcode.Differences, "verify, load --verify or copy --verify found differences, or check found keys that "+
		"collide or, with --fail-on-duplicates, repeat", "look at the differences that were listed"),
	exit(exitcode.NoInput, "no input: the globs, folders and prefixes that are given match nothing, or nothing is new "+
		"with --fail-if-nothing-new. A file that is named and not there is bad usage (2), and so is a glob without a match "+
		"beside inputs that are there", "wait for the delivery"),
	exit(exitcode.Hangup, "the terminal is gone (SIGHUP)", "give the same command again: a load resumes"),
	exit(exitcode.Interrupted, "stopped by Ctrl-C (SIGINT)", "give the same command again: a load resumes"),
	exit(exitcode.Crashed, "the program crashed: a defect, no memory, no thread, or SIGQUIT; no core is dumped, for it "+
		"would hold access keys", "give the same command again: a load resumes; report what it printed"),
	exit(exitcode.Killed, "killed (SIGKILL), as by an administrator or for lack of memory; it could print nothing",
		"give the same command again: a load resumes; for lack of memory, lower --memory"),
	exit(exitcode.Pipe, "the reader of the output has closed it, as | head does", "nothing, if that was meant"),
	exit(exitcode.Terminated, "stopped by SIGTERM, such as by a scheduler", "give the same command again: a load resumes"),
}

func exit(code int, cause, remedy string) Entry {
	return Entry{Code: strconv.Itoa(code), Kind: Exit, Cause: cause, Remedy: remedy}
}
