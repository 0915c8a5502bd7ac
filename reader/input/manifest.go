package input

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// maxLineBytes is the longest line of a manifest: beyond it the file is taken for something else.
const maxLineBytes = 1 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// manifest adds the inputs a manifest names, one argument a line: what is true of an argument is true of a line, but that
// it cannot name another manifest. Blank lines and those that begin with # are skipped, blanks at both ends of a line
// removed. A relative name is meant from the working directory, as on the command line, so that the output of find can be
// used; if it names nothing there, from the manifest's folder, so that a list may lie beside its files.
func (e *expander) manifest(ctx context.Context, name string) error {
	if name == Stdin || name == "" || strings.HasPrefix(name, "@") {
		return fmt.Errorf("read manifest @%s: name a file that lists inputs, one a line", name)
	}
	item, err := e.one(ctx, name)
	if err != nil {
		return err
	}
	dir := ""
	switch item.src.(type) {
	case *localFile, *streamFile:
		dir = filepath.Dir(name)
	}
	body, err := item.Open(ctx)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer body.Close()

	before := e.number
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLineBytes)
	for n := 1; lines.Scan(); n++ {
		if err := e.line(ctx, lines.Bytes(), n, dir); err != nil {
			return fmt.Errorf("read manifest %s line %d: %w", item.Name, n, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read manifest %s: a line is longer than %d bytes; name a text file that lists inputs", item.Name, maxLineBytes)
	} else if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if e.number == before {
		return fmt.Errorf("read manifest %s: it names no input; write one a line", item.Name)
	}
	return nil
}

func (e *expander) line(ctx context.Context, line []byte, n int, dir string) error {
	if n == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	arg := string(bytes.TrimSpace(line))
	switch {
	case arg == "" || arg[0] == '#':
		return nil
	case arg[0] == '@':
		return fmt.Errorf("%s: a manifest cannot name another; list its inputs here", arg)
	case strings.IndexByte(arg, 0) >= 0:
		return errors.New("it has zero bytes; name a text file that lists inputs")
	}
	return e.argument(ctx, arg, dir)
}

// one returns the only input that a name means, without taking it.
func (e *expander) one(ctx context.Context, name string) (Item, error) {
	sub := newExpander(e.Options)
	sub.Extensions = nil
	if err := sub.argument(ctx, name, ""); err != nil {
		return Item{}, fmt.Errorf("read manifest: %w", err)
	}
	if len(sub.set.Items) != 1 {
		return Item{}, fmt.Errorf("read manifest @%s: it means %d inputs; name one", redactAny(name), len(sub.set.Items))
	}
	return sub.set.Items[0], nil
}

// redactAny redacts an argument that may be an address.
func redactAny(arg string) string {
	if strings.Contains(arg, "://") {
		return redact(arg)
	}
	return arg
}
