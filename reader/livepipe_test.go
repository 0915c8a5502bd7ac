package reader

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
)

// livePipe opens a pipe whose writer delivers the parts, one a minute, and then closes it with end.
func livePipe(t *testing.T, o Options, end error, parts ...string) (s *File, err error) {
	t.Helper()
	r, w := io.Pipe()
	set := conformance.Try(input.Expand(t.Context(), []string{input.Stdin}, input.Options{Stdin: r})).Must(t)
	go func() {
		for i, part := range parts {
			if i > 0 {
				time.Sleep(time.Minute)
			}
			_, _ = io.WriteString(w, part)
		}
		w.CloseWithError(end)
	}()
	o.Stream = func(r io.Reader) io.Reader { return input.Stoppable(t.Context(), r) }
	return Open(t.Context(), set.Items[0], o)
}

// changesIn samples a source as a load would and then reads its changes. at has the time at which each one arrived.
func changesIn(t *testing.T, s *File) (rows []string, at []time.Duration) {
	t.Helper()
	begun := time.Now()
	must(t, conformance.ErrorOf(s.Sample(200, nil, func(*record.Record) {})))
	must(t, s.Suspend())
	must(t, readEach(s, func(rec *record.Record) {
		row := fmt.Sprint(rec.Mode)
		for _, c := range rec.Cells {
			row += fmt.Sprintf(" %s=%s", c.Name, c.Datum.Bytes)
		}
		rows, at = append(rows, row), append(at, time.Since(begun))
	}))
	return rows, at
}

func TestLivePipeGivesSameChangesAsFile(t *testing.T) {
	event := func(op string, id int) string {
		return fmt.Sprintf(
			`{"op":%q,"before":{"id":"%d"},"after":{"id":"%[2]d","v":"\n{é"},"source":{"table":"t","lsn":%[2]d}}`, op, id)
	}
	canal := `{"database":"d","table":"t","isDdl":false,"type":"INSERT","data":[{"id":"1"},{"id":"2"}],"mysqlType":{"id":"text"},"es":7}` + "\n"
	for name, tt := range map[string]struct {
		text string
		live bool // whether a part that ends after a change is read before the next part arrives
	}{
		"Debezium": {"null\n" + event("c", 1) + "\n" + event("d", 1) + "\r\n\n" + event("u", 2) + "\n", true},
		"canal":    {canal + strings.Replace(canal, "INSERT", "DELETE", 1), true},
		"Maxwell": {
			strings.Repeat(
				`{"database":"d","table":"t","type":"insert","ts":7,"xid":3,"primary_key_columns":["id"],"data":{"id":"1"}}`+
					"\n", 2), true},
		"DynamoDB":    {strings.Repeat(`{"Metadata":{},"Keys":{"id":{"S":"x"}},"NewImage":{"id":{"S":"x"}}}`+"\n", 2), true},
		"an array":    {"[" + event("c", 1) + "\n," + event("d", 1) + "\n]\n", false},
		"many lines":  {strings.ReplaceAll(event("c", 1)+event("d", 1), ",", ",\n"), false},
		"no line end": {event("c", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Changes: &Changes{Typed: func(string) bool { return true }}}
			want, _ := changesIn(t, opened(t, itemOf(t, "in.json", []byte(tt.text)), o))
			first, print := 0, ""
			for line := range strings.Lines(tt.text) {
				if first += len(line); strings.HasPrefix(line, "{") {
					break
				}
			}
			perLine := len(want) / max(1, strings.Count("\n"+tt.text, "\n{"))
			for at := range len(tt.text) + 1 {
				synctest.Test(t, func(t *testing.T) {
					o.Changes, o.SplitBytes = &Changes{Typed: o.Changes.Typed}, []int{0, 60}[at%2]
					begun := time.Now()
					s := conformance.Try(livePipe(t, o, nil, tt.text[:at], tt.text[at:])).Must(t)
					defer s.Close()
					waited := time.Since(begun)
					conformance.MustTrue(t, (waited < time.Second) == (tt.live && at >= first), "cut at %d: after %v", at, waited)
					is := conformance.Try(s.fingerprint()).Must(t)
					if print == "" {
						print = is
					}
					conformance.Equal(t, is, print, "cut at %d: the fingerprint", at)
					got, came := changesIn(t, s)
					conformance.MustTrue(t, slices.Equal(got, want), "cut at %d: %q, want %q", at, got, want)
					for i := range min(len(want), perLine*strings.Count(tt.text[:at], "}\n")) {
						conformance.True(t, !tt.live || came[i] < time.Second, "cut at %d: change %d came after %v", at, i, came[i])
					}
				})
			}
		})
	}
}

// TestBrokenPipeIsNotEndOfChanges expects the error after the changes before it, or from Open if there are none.
func TestBrokenPipeIsNotEndOfChanges(t *testing.T) {
	change := `{"op":"c","after":{"id":"1"},"source":{"table":"t"}}` + "\n"
	for _, parts := range [][]string{{change}, {change, ""}, {change, change[:20]}} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s, err := livePipe(t, Options{Changes: &Changes{Typed: func(string) bool { return true }}},
				io.ErrClosedPipe, parts...)
			if err == nil {
				defer s.Close()
				err = readEach(s, func(*record.Record) { n++ })
			}
			conformance.True(t, n == len(parts)-1, "%d changes before the error", n)
			conformance.Is(t, err, io.ErrClosedPipe, "the end")
		})
	}
}
