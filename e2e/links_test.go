//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	linkCells   = flag.String("links", "", "cells of the table of slow links to measure, in parts of their names separated by semicolons; all measures all of them")
	linkSeconds = flag.Float64("link-seconds", 30, "for how long each cell of it loads at least")
)

// linkCeiling is what the line carries where nothing else limits it: 50 Mbit/s, so that links are compared and not processors.
const linkCeiling = 50e6 / 8

// linkTroubles are what a link of the table may be.
var linkTroubles = []struct {
	name string
	set  func(*slowLink)
}{
	{"3.2 Mbit/s", func(l *slowLink) { l.bandwidth = 3.2e6 / 8 }},
	{"10 Mbit/s", func(l *slowLink) { l.bandwidth = 10e6 / 8 }},
	{"200 ms", func(l *slowLink) { l.delay = 200 * time.Millisecond }},
	{"stalls", func(l *slowLink) { l.stalls, l.stall = 0.01, linkStall }},
	{"one connection", func(l *slowLink) { l.connections = 1 }},
}

// linkReport is what the summary of a load says of its way.
type linkReport struct {
	State                  string
	Read, Written, Retried int64
	Requests               int64
	BytesSent              int64 `json:"bytes_sent"`
	Seconds                float64
	PartitionsUsed         int `json:"partitions_used"`
	Rejected, Unfinished   int64
	CPUSeconds             float64 `json:"cpu_seconds"`
	Error                  string
}

// TestASlowLinkLosesNoRequest loads more than the link carries within the time-out of a request. That no row is sent twice is shown in
// virtual time, where no machine stalls: pipeline's TestALoadFillsASlowLink.
func TestASlowLinkLosesNoRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	const rows = 90
	dir := t.TempDir()
	s := startServe(t, "--sync", "none", "--quiet", "--partitions", "8", "--sample-file", linkSample(t, dir))
	l := &slowLink{bandwidth: 2e6 / 8}
	l.start(t, s.URL)
	r, err := linkLoad(l.URL, s, filepath.Join(dir, "run"), linkInput(t, dir, 20_000, rows), "--limit", fmt.Sprint(rows), "--request-timeout", "3s", "--order", "none")
	if err != nil || r.Written != rows {
		t.Errorf("%+v, %v", r, err)
	}
	if n := len(dump(t, s, "t")); n != rows {
		t.Errorf("%d rows in the table, want %d", n, rows)
	}
}

func TestACompressedLoadWritesTheSameRows(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("id,v\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "%s,%s\n", linkID(i), strings.Repeat(fmt.Sprint("word ", i, " "), 20))
	}
	input := filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(input, []byte(text.String()), 0o600))
	s := startServe(t, "--sync", "none", "--quiet")
	sent := map[string]int64{}
	for _, mode := range []string{"off", "auto", "on"} {
		r, err := linkLoad(s.URL, s, filepath.Join(dir, mode), input, "--compress", mode, "--verify")
		if err != nil || r.Written != 2000 || r.Retried != 0 {
			t.Errorf("%s: %+v, %v", mode, r, err)
		}
		sent[mode] = r.BytesSent
	}
	if sent["auto"] < sent["off"]*9/10 || sent["on"] > sent["off"]/3 {
		t.Errorf("bytes of requests: %v", sent)
	}
}

// TestLinks measures loads through slow links, each trouble alone and in pairs, against what plain connections carry.
func TestLinks(t *testing.T) {
	if *linkCells == "" {
		t.Skip("set -links all (make links)")
	}
	dir := t.TempDir()
	fmt.Printf("%-34s %7s %9s %9s %6s %8s %8s %7s\n", "link", "row", "KB/s", "of", "share", "requests", "retried", "seconds")
	for i, a := range linkTroubles {
		for j, b := range linkTroubles {
			if j < i || i == 0 && j == 1 {
				continue // both rates at once are one of them
			}
			for _, row := range []int{20_000, 100} {
				name := a.name
				if i != j {
					name += " + " + b.name
				}
				if !linkPicked(fmt.Sprintf("%s, %d bytes", name, row)) {
					continue
				}
				l := &slowLink{bandwidth: linkCeiling}
				a.set(l)
				b.set(l)
				measureLink(t, dir, name, l, row)
			}
		}
	}
}

// rowBytes is about how long a row is in a request.
func rowBytes(row int) float64 { return float64(row) + 61 }

func linkPicked(name string) bool {
	for part := range strings.SplitSeq(*linkCells, ";") {
		if part == "all" || name == part || strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// measureLink prints one line of the table.
func measureLink(t *testing.T, dir, name string, l *slowLink, row int) {
	const workers = 32 // the default
	connections := workers
	if l.connections > 0 {
		connections = l.connections
	}
	const plain = "a plain copy"
	possible, of := l.plainCopy(t, connections, 10*time.Second), plain
	if trips := float64(connections) / l.roundTrip(t).Seconds() * 200; trips*rowBytes(row) < possible {
		possible, of = trips*float64(row), "200 rows a round trip"
	}
	rows := int(possible * 1.1 * *linkSeconds / float64(row))
	if of == plain {
		rows = int(possible * 1.1 * *linkSeconds / rowBytes(row))
	}
	input := linkInput(t, dir, row, rows)
	s := startServe(t, "--sync", "none", "--quiet", "--partitions", "8", "--sample-file", linkSample(t, dir))
	l.start(t, s.URL)
	r, err := linkLoad(l.URL, s, filepath.Join(t.TempDir(), "run"), input, "--limit", fmt.Sprint(rows), "--pre-split", "off")
	l.stop()
	s.stop(t)
	// A plain copy is compared by the bytes of requests without what was sent again, the others by rows.
	rate := float64(r.Written) * float64(row) / max(r.Seconds, 1e-9)
	if of == plain {
		rate = float64(r.BytesSent) * float64(r.Written) / float64(max(r.Written+r.Retried, 1)) / max(r.Seconds, 1e-9)
	}
	fmt.Printf("%-34s %7d %9.0f %9.0f %6.3f %8d %8d %7.1f  of %s", name, row, rate/1e3, possible/1e3, rate/possible, r.Requests, r.Retried, r.Seconds, of)
	if err != nil || r.Written != int64(rows) || r.PartitionsUsed != 8 {
		fmt.Printf("; %s, %d of %d rows written to %d partitions, %v %s", r.State, r.Written, rows, r.PartitionsUsed, err, r.Error)
		t.Errorf("%s, %d bytes: the load did not finish", name, row)
	}
	fmt.Println()
}

// linkID spreads the rows of a file over the key space.
func linkID(i int) string { return fmt.Sprintf("%08x-%07d", uint32(i)*2654435761, i) }

// linkSample makes a file of keys that says where partitions begin.
func linkSample(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintln(&text, linkID(i))
	}
	name := filepath.Join(dir, "sample.txt")
	must(t, os.WriteFile(name, []byte(text.String()), 0o600))
	return name
}

// linkInput makes a file of rows of about that many bytes each, which cannot be compressed by much.
func linkInput(t *testing.T, dir string, row, rows int) string {
	t.Helper()
	name := filepath.Join(dir, fmt.Sprintf("%d.csv", row))
	if info, err := os.Stat(name); err == nil && info.Size() >= int64(row)*int64(rows) {
		return name
	}
	f, err := os.Create(name)
	must(t, err)
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(w, "id,text")
	rnd, text := rand.New(rand.NewPCG(1, uint64(row))), make([]byte, row)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range rows + 1 {
		for j := 0; j < len(text); j += 8 {
			for k, bits := j, rnd.Uint64(); k < min(j+8, len(text)); k++ {
				text[k] = letters[bits&63]
				bits >>= 6
			}
		}
		id := linkID(i)
		fmt.Fprintf(w, "%s,%s\n", id, text[:row-len(id)-2])
	}
	must(t, w.Flush())
	must(t, f.Close())
	return name
}

func linkLoad(address string, s *served, runDir, input string, flags ...string) (r linkReport, err error) {
	cmd := exec.Command(binary, append([]string{"load", input, "--endpoint", address, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id:string", "--run-dir", runDir, "--json", "-q"}, flags...)...)
	cmd.Env = append(os.Environ(), "TABLESTORE_ACCESS_KEY_ID="+s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET="+s.AccessKeySecret)
	out, err := cmd.Output()
	if jsonErr := json.Unmarshal(out, &r); err == nil {
		err = jsonErr
	}
	if exit, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return r, err
}
