//go:build unix

package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

func writeTo(ctx context.Context, path, text string) error {
	o, err := Find(path)
	if err != nil {
		return err
	}
	return o.WriteTo(ctx, 0o666, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func TestLinkIsKeptAndTargetReplaced(t *testing.T) {
	dir := t.TempDir()
	deep, real := filepath.Join(dir, "up", "deep"), filepath.Join(dir, "up", "real")
	must(t, errors.Join(os.MkdirAll(deep, 0o700), os.Symlink(deep, filepath.Join(dir, "folder")),
		os.Symlink("../real", filepath.Join(deep, "one")), os.Symlink("folder/one", filepath.Join(dir, "two"))))
	put(t, real, "old")
	link := filepath.Join(dir, "two")
	must(t, writeTo(t.Context(), link, "new"))
	info, err := os.Lstat(link)
	conformance.True(t, err == nil && info.Mode()&fs.ModeSymlink != 0 && content(t, real) == "new",
		"%v, %v: %s", info.Mode(), err, content(t, real))
	info, err = os.Stat(real)
	conformance.True(t, err == nil && info.Mode().Perm() == 0o600, "a file that only its owner could read: %v", info)
}

func TestFolderSocketAndDanglingLinkAreRefused(t *testing.T) {
	dir := t.TempDir()
	circle, dangling, socket := filepath.Join(dir, "circle"), filepath.Join(dir, "dangling"), filepath.Join(dir, "s")
	victim := filepath.Join(dir, "victim")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close()
	must(t, errors.Join(os.Symlink(circle, circle), os.Symlink(victim, dangling)))
	for path, want := range map[string]string{dir: "is a folder", circle: "circle", socket: "neither",
		dangling: "is a link to the missing " + victim} {
		refused := new(RefusedError)
		err := writeTo(t.Context(), path, "rows")
		conformance.True(t, errors.As(err, &refused) && refused.Exit() == 2 && strings.Contains(err.Error(), want), "%v", err)
	}
	conformance.Equal(t, content(t, victim), "none", "a link to nothing was followed")
	put(t, victim, "precious")
	refused := WriteNew(t.Context(), dangling, 0o600, nil)
	conformance.True(t, refused != nil && content(t, victim) == "precious", "%v, %s", refused, content(t, victim))
}

func TestPipesAndDevicesAreWrittenDirectly(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	read := make(chan string)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- string(text)
	}()
	must(t, writeTo(t.Context(), pipe, "rows"))
	conformance.Equal(t, <-read, "rows", "the reader")
	must(t, writeTo(t.Context(), os.DevNull, "rows"))
	for _, path := range []string{pipe, os.DevNull} {
		info, err := os.Lstat(path)
		conformance.True(t, err == nil && !info.Mode().IsRegular(), "%s is %v, %v", path, info.Mode(), err)
	}
	err := writeTo(t.Context(), "/dev/full", "rows")
	conformance.True(t, errors.Is(err, syscall.ENOSPC) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, fs.ErrPermission), "/dev/full: %v", err)
}

func TestWaitForPipeReaderEndsWithContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	conformance.Is(t, writeTo(ctx, pipe, "rows"), stop, "no reader")
	reader := conformance.Try(os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)).Must(t)
	defer reader.Close()
	ctx, cancel = context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	conformance.Is(t, writeTo(ctx, pipe, strings.Repeat("rows", 1<<20)), stop, "a reader that reads nothing")
}

// TestFileOfDescriptorIsNotReplaced writes to a file that already has content, as in (echo id; tsimport export -o
// /dev/fd/3) 3>file.
func TestFileOfDescriptorIsNotReplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	f := conformance.Try(os.Create(name)).Must(t)
	defer f.Close()
	must(t, conformance.ErrorOf(f.WriteString("before ")))
	must(t, writeTo(t.Context(), "/dev/fd/"+strconv.Itoa(conformance.Try(syscall.Dup(int(f.Fd()))).Must(t)), "rows"))
	_, err := f.WriteString(" after")
	conformance.True(t, err == nil && content(t, name) == "before rows after", "%v: %s", err, content(t, name))
	other := exec.Command("cat")
	other.Stdout = f
	in, err := other.StdinPipe()
	must(t, errors.Join(err, other.Start()))
	defer other.Wait()
	defer in.Close()
	path := fmt.Sprintf("/proc/%d/fd/1", other.Process.Pid)
	if _, err := os.Stat(path); err != nil {
		return // a system without /proc
	}
	err = writeTo(t.Context(), path, ", another's")
	conformance.True(t, err == nil && content(t, name) == "before rows after, another's", "%v: %s", err, content(t, name))
}

func TestLongNameIsShortenedWithHash(t *testing.T) {
	dir := t.TempDir()
	names := map[string]bool{}
	for _, base := range []string{strings.Repeat("a", 249), strings.Repeat("a", 255), strings.Repeat("a", 254) + "b",
		strings.Repeat("表", 85)} {
		name := filepath.Join(dir, base)
		err := writeTo(t.Context(), name, "rows")
		conformance.True(t, err == nil && content(t, name) == "rows", "%d bytes: %v", len(base), err)
		for _, suffix := range []string{Suffix, ".tsimport-export.lock"} {
			beside := filepath.Base(Beside(name, suffix))
			conformance.True(t, !names[beside] && len(beside) <= MaxNameBytes && strings.HasSuffix(beside, suffix) &&
				strings.ToValidUTF8(beside, "") == beside, "%q", beside)
			names[beside] = true
		}
	}
	conformance.Equal(t, Beside("folder/rows.csv", Suffix), "folder/rows.csv.part", "beside")
}
