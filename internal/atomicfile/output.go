package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// Output is a user's path with links resolved, and the way to write to it.
type Output struct {
	Path   string // the file to create or replace, with links followed
	Stream bool   // the path is a pipe, terminal, device or open descriptor, which is written directly
	info   fs.FileInfo
}

// RefusedError says why a user's path cannot be written.
type RefusedError struct{ Path, Why string }

func (e *RefusedError) Error() string { return e.Path + " " + e.Why }

// Exit returns the exit code of a command that was given the path. It implements exitcode.Coded.
func (e *RefusedError) Exit() int { return 2 }

const maxLinks = 40

// Find resolves a path for writing. It returns a *RefusedError for a folder, a disk, a socket or a dangling link.
func Find(path string) (Output, error) {
	o := Output{Path: path}
	for range maxLinks {
		if pid, _ := descriptor(o.Path); pid != 0 {
			o.Stream = true
			return o, nil
		}
		info, err := os.Lstat(o.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && o.Path == path:
			return o, nil
		case errors.Is(err, fs.ErrNotExist):
			return o, &RefusedError{path, fmt.Sprintf("is a link to the missing %s: remove the link or create the file", o.Path)}
		case err != nil:
			return o, err
		case info.Mode()&fs.ModeSymlink != 0:
			if o.Path, err = target(o.Path); err != nil {
				return o, err
			}
			continue
		case info.IsDir():
			return o, &RefusedError{path, "is a folder; name a file"}
		case info.Mode().IsRegular():
			o.info = info
			return o, nil
		case info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0:
			o.Stream, o.info = true, info
			return o, nil
		}
		return o, &RefusedError{path, "is neither a file, a pipe nor a terminal; name a file"}
	}
	return o, &RefusedError{path, "is a link that leads in a circle; name a file"}
}

func target(link string) (string, error) {
	to, err := os.Readlink(link)
	if err != nil || filepath.IsAbs(to) {
		return to, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(link)) // so that .. in the link is relative to the right folder
	return filepath.Join(dir, to), err
}

var descriptors = regexp.MustCompile(`^(?:/dev/fd|/proc/([0-9]+)(?:/task/[0-9]+)?/fd)$`)

// descriptor returns the process and number of the descriptor that a path such as /dev/fd/1 names, or a pid of 0.
func descriptor(path string) (pid, number int) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	in := descriptors.FindStringSubmatch(dir)
	if err != nil || in == nil {
		return 0, 0
	}
	if number, err = strconv.Atoi(filepath.Base(path)); err != nil {
		return 0, 0
	}
	if pid = os.Getpid(); in[1] != "" {
		pid, _ = strconv.Atoi(in[1])
	}
	return pid, number
}

// readerEach is the interval at which Open tries again to open a pipe that has no reader.
const readerEach = 50 * time.Millisecond

// Open opens the output to write in place, and waits for a pipe's reader. flag, such as os.O_TRUNC, is for files only.
func (o Output) Open(ctx context.Context, flag int, perm fs.FileMode) (*os.File, error) {
	switch pid, number := descriptor(o.Path); {
	case !o.Stream:
		return os.OpenFile(o.Path, os.O_WRONLY|os.O_CREATE|flag, perm)
	case pid != os.Getpid():
	case number == 1:
		return os.Stdout, nil
	case number == 2:
		return os.Stderr, nil
	default:
		return os.NewFile(uintptr(number), o.Path), nil
	}
	flag = os.O_WRONLY | os.O_APPEND
	if o.info != nil && o.info.Mode()&fs.ModeNamedPipe != 0 {
		flag |= syscall.O_NONBLOCK // without a reader, opening fails instead of blocking
	}
	for {
		f, err := os.OpenFile(o.Path, flag, 0)
		if !errors.Is(err, syscall.ENXIO) || flag&syscall.O_NONBLOCK == 0 {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("open %s: no process reads the pipe: %w", o.Path, context.Cause(ctx))
		case <-time.After(readerEach):
		}
	}
}

// WriteTo replaces the file as Write does, or writes to a stream. The context limits the wait for a pipe's reader, and
// writing to the pipe.
func (o Output) WriteTo(ctx context.Context, perm fs.FileMode, write func(io.Writer) error) error {
	if !o.Stream {
		if o.info != nil {
			perm &= o.info.Mode().Perm() // keeps private files private
		}
		return Write(o.Path, Options{Perm: perm}, write)
	}
	f, err := o.Open(ctx, 0, 0)
	if err != nil {
		return err
	}
	unhook := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) }) // works for pipes only
	err = write(f)
	unhook()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if f == os.Stdout || f == os.Stderr {
		return err
	}
	return errors.Join(err, f.Close())
}

// WriteNew writes content to a user's path as WriteTo does, but returns a *RefusedError if the file exists.
func WriteNew(ctx context.Context, path string, perm fs.FileMode, content []byte) error {
	o, err := Find(path)
	if err != nil {
		return err
	}
	if o.info != nil && !o.Stream {
		return &RefusedError{path, "exists; name another file"}
	}
	return o.WriteTo(ctx, perm, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}
