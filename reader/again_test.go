package reader

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/source"
)

// An input is set aside for what it holds alone: not for a server, a disk or this machine.
func TestDamageIsWhatAnInputHolds(t *testing.T) {
	answers := map[string]int{"gone": http.StatusNotFound, "forbidden": http.StatusForbidden, "busy": http.StatusServiceUnavailable}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[strings.Trim(r.URL.Path, "/")])
	}))
	defer server.Close()
	errs := map[string]error{
		"disk": &os.PathError{Op: "read", Path: "a", Err: syscall.EIO}, "memory": source.ErrMemory, "stopped": context.Canceled, "changed": input.ErrChanged,
	}
	for name := range answers {
		_, errs[name] = input.Expand(t.Context(), []string{server.URL + "/" + name}, input.Options{Retry: input.Retry{Attempts: 1}})
	}
	for name, err := range errs {
		if err == nil || Damaged(fmt.Errorf("read a: %w", err)) {
			t.Errorf("%s: %v counts as damage", name, err)
		}
	}
	if !Damaged(errors.New("the page is cut short")) || Damaged(nil) {
		t.Error("damage is none, or none is damage")
	}
}

// TestAFileIsReadAgainToItsFault: a second reading meets what the first has met, and nothing in a good file.
func TestAFileIsReadAgainToItsFault(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprint(w, "id,n\n")
	for i := range 100_000 {
		fmt.Fprintf(w, "%d,%d\n", i, i*i)
	}
	must(t, w.Close())
	for name, text := range map[string]string{
		"good.csv": "id,n\n1,2\n", "good.csv.gz": packed.String(), "cut.csv.gz": packed.String()[:packed.Len()/2], "cut.json": `[{"id":1},{"id":`,
	} {
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		set, err := input.Expand(t.Context(), []string{file}, input.Options{})
		must(t, err)
		s, err := Open(t.Context(), set.Items[0], Options{})
		must(t, err)
		again, second := s.ReadAgain(0), s.ReadAgain(0)
		if cut := strings.HasPrefix(name, "cut"); Damaged(again) != cut || cut && again.Error() != second.Error() {
			t.Errorf("%s: %v, then %v", name, again, second)
		}
		must(t, s.Close())
	}
}
