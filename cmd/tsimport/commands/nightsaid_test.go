package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// lineOfNight is the last line of a job that has begun: why it was stopped, how its loads ended, their rows, the first cause, and the folder.
var lineOfNight = regexp.MustCompile(`^(?:(stopped by \w+); )?job (done|failed|stopped): (\d) of 6 loads done, ([\d,]+) read, ([\d,]+) written, ([\d,]+) rejected, ([\d,]+) superseded` +
	`(?:, ([\d,]+) unfinished)?(?:, ([\d,]+) inputs? set aside)?(?:; load (\w+): (.+))?; see (tsimport-runs/\S+)$`)

// lastLine is what the last line of a pod says.
type lastLine struct {
	stopped, state, load, cause, folder                        string
	done, read, written, rejected, superseded, unfinished, bad int
}

// causes are what the last line has to say of faults.
var causes = map[string]string{"the service is down": "cannot connect", "the secret is wrong": "OTSAuthFailed", clockIsOff: "this machine's clock is too far from the service's",
	"the state is gone": "--state", "the state is not mounted": "it may be a share that is not mounted", "SIGTERM": "stopped by terminated", "the service goes away": "connect"}

// judgeSaid compares what a pod has said with how it has ended, in any form and also if it was to be quiet.
func (s *season) judgeSaid(what string, p *pod) {
	if p.code == 0 {
		for line := range strings.Lines(p.said) {
			if p.quiet && !strings.Contains(line, "warning") {
				s.fail("quiet, and yet: %s", line)
			}
		}
		return
	}
	l := s.lastLine(p)
	if l.read != l.written+l.rejected+l.superseded+l.unfinished {
		s.fail("the rows of the last line do not add up: %+v: %s", l, p.said)
	}
	if _, err := os.Stat(filepath.Join(l.folder, "job.json")); err != nil {
		s.fail("the last line names %s: %v", l.folder, err)
	}
	if p.code == 143 && l.stopped == "" || p.code != 143 && l.load == "" || (l.done == 6) != (l.state == "done") || (l.state == "done") != (p.code == 3) {
		s.fail("exit code %d, and the last line says: %+v: %s", p.code, l, p.said)
	}
	if cause := causes[what]; p.code != 3 && !strings.Contains(l.stopped+l.cause, cause) && (p.code != 1 || what != "SIGTERM" && what != "the service goes away") {
		s.fail("%s, and the last line lacks %q: %s", what, cause, p.said)
	}
}

// lastLine reads the last line that a pod has said.
func (s *season) lastLine(p *pod) (l lastLine) {
	lines := strings.Split(strings.TrimSuffix(p.said, "\n"), "\n")
	text, is := strings.CutPrefix(lines[len(lines)-1], "tsimport: ")
	var event struct {
		Msg, Event, Command                             string
		Level                                           string
		RunDir                                          string `json:"run_dir"`
		ExitCode                                        int    `json:"exit_code"`
		Read, Written, Rejected, Superseded, Unfinished int
		Bad                                             int `json:"bad_inputs"`
	}
	if p.json {
		for _, line := range lines {
			event.Msg = ""
			err := json.Unmarshal([]byte(line), &event)
			if is = err == nil && event.Msg != ""; !is {
				s.fail("not an event: %s: %v", line, err)
			}
		}
		text = event.Msg
		is = event.Event == "error" && event.Level == "ERROR" && event.Command == "run" && event.ExitCode == p.code
	}
	m := lineOfNight.FindStringSubmatch(text)
	if m == nil || !is {
		s.fail("exit code %d, and the last line is: %s", p.code, p.said)
	}
	var n []int
	for _, text := range m[3:10] {
		i, _ := strconv.Atoi(strings.ReplaceAll(text, ",", "")) // "" is none
		n = append(n, i)
	}
	l = lastLine{stopped: m[1], state: m[2], load: m[10], cause: m[11], folder: m[12], done: n[0], read: n[1], written: n[2], rejected: n[3], superseded: n[4], unfinished: n[5], bad: n[6]}
	if p.json && (event.RunDir != l.folder || event.Read != l.read || event.Written != l.written || event.Rejected != l.rejected || event.Superseded != l.superseded || event.Unfinished != l.unfinished ||
		event.Bad != l.bad) {
		s.fail("the fields of the last event are not what it says: %s", lines[len(lines)-1])
	}
	return l
}
