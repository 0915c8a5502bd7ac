package input

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
)

// maxLineBytes is the length of a manifest's longest line. A file with a longer one is something else.
const maxLineBytes = 1 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// manifest adds the inputs named by a manifest, one argument per line. A line cannot name another manifest. Blank lines
// and lines that begin with # are skipped, and blanks at both ends of a line are removed. A relative name is looked up
// first in the working directory, so that the output of find can be used, then in the manifest's folder, so that a list
// can be stored with its files.
func (e *expander) manifest(ctx context.Context, name string) error {
	if name == Stdin || name == "" || strings.HasPrefix(name, "@") {
		return fmt.Errorf("read manifest @%s: name a file that lists inputs, one per line", Redact(name))
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

	// A list from another machine may name inputs on other machines, but never on this one.
	if r, ok := item.src.(*remote); ok {
		e.listedBy = r
		defer func() { e.listedBy = nil }()
	}
	before := e.number
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLineBytes)
	for n := 1; lines.Scan(); n++ {
		if err := e.line(ctx, lines.Bytes(), n, dir); err != nil {
			return fmt.Errorf("read manifest %s line %d: %w", item.Name, n, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read manifest %s: a line exceeds %d bytes; want a text list of inputs", item.Name, maxLineBytes)
	} else if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if e.number == before {
		return fmt.Errorf("read manifest %s: it lists no inputs; write one per line", item.Name)
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
		return fmt.Errorf("%s: a manifest cannot name another; list its inputs here", Redact(arg))
	case strings.IndexByte(arg, 0) >= 0:
		return errors.New("it contains NUL bytes; name a text file that lists inputs")
	}
	if e.listedBy != nil {
		if err := e.listedBy.mayName(arg); err != nil {
			return err
		}
	}
	return e.argument(ctx, arg, dir)
}

// mayName refuses names that a server's list must not contain: local ones and, if it is public, private addresses.
func (r *remote) mayName(arg string) error {
	switch SchemeOf(arg) {
	case "oss", "s3":
		return nil
	case "http", "https":
	default:
		return fmt.Errorf("%s: a list from a server names addresses only (http://, https://, oss:// or s3://); download "+
			"the list to name files", Redact(arg))
	}
	u, err := url.Parse(arg)
	if err != nil {
		return nil // refused later, when it is opened
	}
	if get, ok := r.fetcher.(*httpObject); internal(u.Hostname()) && !(ok && internal(get.address.Hostname())) {
		return fmt.Errorf("%s: a public server's list names an address inside this network; download the list", redact(arg))
	}
	return nil
}

// internal reports whether a host is this machine or a private address. It does not resolve names.
func internal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		// Some resolvers take 2130706433, 0x7f.1 and 127.1 for 127.0.0.1. No public name ends in a number.
		last := host[strings.LastIndexByte(host, '.')+1:]
		return last != "" && last[0] >= '0' && last[0] <= '9'
	}
	a = a.Unmap().WithZone("")
	return (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || sharedAddresses.Contains(a))
}

// sharedAddresses are used by carriers and clouds. In some clouds, one of them serves the machine's credentials.
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// one returns the only input that a name matches. It does not add it.
func (e *expander) one(ctx context.Context, name string) (Item, error) {
	sub := newExpander(e.options)
	sub.options.Extensions = nil
	if err := sub.argument(ctx, name, ""); err != nil {
		return Item{}, fmt.Errorf("read manifest: %w", err)
	}
	if len(sub.set.Items) != 1 {
		return Item{}, fmt.Errorf("read manifest @%s: it matches %d inputs; name one", Redact(name), len(sub.set.Items))
	}
	return sub.set.Items[0], nil
}
