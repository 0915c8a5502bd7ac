//go:build unix

package input

import (
	"errors"
	"example.com/tsimport/internal/conformance"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestPipesAreStreamsIfNamedAndSkippedInFolders(t *testing.T) {
	tree(t, "d/a.csv")
	if err := syscall.Mkfifo("d/pipe", 0o600); err != nil {
		t.Skip(err)
	}
	set := expand(t, Options{}, "d")
	wantNames(t, set, "d/a.csv")
	conformance.True(t, len(set.Warnings) == 1 && strings.Contains(set.Warnings[0], "d/pipe is not a regular file"),
		"warnings %q", set.Warnings)
	pipe := expand(t, Options{}, "d/pipe").Items[0]
	conformance.True(t, !pipe.Seekable() && pipe.Size == -1, "a pipe is %+v", pipe)
	conformance.Is(t, conformance.ErrorOf(pipe.OpenAt(t.Context())), errors.ErrUnsupported, "open pipe at")
	go func() {
		w, err := os.OpenFile("d/pipe", os.O_WRONLY, 0)
		if err == nil {
			io.WriteString(w, "through")
			w.Close()
		}
	}()
	wantText(t, &pipe, "through")
}
