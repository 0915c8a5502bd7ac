package input

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A DynamoDB export to S3 is a folder with these two lists of parts and a folder data, which holds the parts.
const (
	exportSummary = "manifest-summary.json"
	exportFiles   = "manifest-files.json"
)

var exportLists = []string{exportSummary, exportFiles, "manifest-summary.md5", "manifest-files.md5"}

// exportPart is a line of exportFiles.
type exportPart struct {
	Items *int64 `json:"itemCount"`
	Key   string `json:"dataFileS3Key"`
}

// listsExport reports whether a file is one of an export's lists, which are not data, and records it as skipped.
func (e *expander) listsExport(name string) bool {
	if !slices.Contains(exportLists, path.Base(filepath.ToSlash(name))) {
		return false
	}
	if _, _, address := strings.Cut(name, "://"); !address {
		if _, err := os.Stat(filepath.Join(filepath.Dir(name), exportSummary)); err != nil {
			return false
		}
	}
	e.skipped = append(e.skipped, "list of an export "+name)
	return true
}

// exported adds the parts of an export if arg is one of its lists. If arg is the summary, both lists must agree.
func (e *expander) exported(ctx context.Context, arg string) (is bool, err error) {
	folder, name := path.Split(filepath.ToSlash(arg))
	if scheme, _, address := strings.Cut(arg, "://"); name != exportSummary && name != exportFiles || address &&
		!strings.EqualFold(scheme, "s3") && !strings.EqualFold(scheme, "oss") {
		return false, nil
	}
	text, err := e.list(ctx, arg)
	if err != nil {
		return false, nil // reported later, when arg is opened as an input
	}
	want := int64(-1)
	files := folder + exportFiles
	if name == exportSummary {
		var at time.Time
		if want, at, is, err = readSummary(text); err != nil || !is {
			return is, wrapOpen(Redact(arg), err)
		}
		if e.set.Exported.IsZero() || at.Before(e.set.Exported) {
			e.set.Exported = at
		}
		if text, err = e.list(ctx, files); err != nil {
			return true, fmt.Errorf("open input %s: cannot read the list of its parts: %w", Redact(arg), err)
		}
	}
	var parts []exportPart
	items, named := int64(0), map[string]int{} // named has line numbers by file name
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLineBytes)
	for n := 1; lines.Scan(); n++ {
		var p exportPart
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil || p.Key == "" || p.Items == nil {
			if n == 1 && name == exportFiles {
				return false, nil // the file merely has the same name as a list
			}
			return true, fmt.Errorf("open input %s line %d: it does not name a part of a DynamoDB export with "+
				"dataFileS3Key and itemCount; is the file complete?", Redact(files), n)
		}
		if first := named[path.Base(p.Key)]; first > 0 {
			return true, fmt.Errorf("open input %s line %d: it names %s, as line %d does; download the list again",
				Redact(files), n, path.Base(p.Key), first)
		}
		named[path.Base(p.Key)] = n
		items += *p.Items
		parts = append(parts, p)
	}
	if err := lines.Err(); err != nil {
		return true, wrapOpen(Redact(files), err)
	}
	if want >= 0 && items != want {
		return true, fmt.Errorf("open input %s: its parts have %d items, but %s says %d: one of the files is incomplete; "+
			"download the export again", Redact(files), items, exportSummary, want)
	}
	for _, p := range parts {
		if err := e.argument(ctx, folder+"data/"+path.Base(p.Key), ""); err != nil {
			return true, fmt.Errorf("%w; the export's list names it; download everything in its folder data", err)
		}
	}
	if len(parts) == 0 {
		return true, fmt.Errorf("open input %s: it lists no parts", Redact(files))
	}
	return true, nil
}

// readSummary parses an export's summary: the number of its items and the time that it shows, zero if not stated.
func readSummary(text []byte) (items int64, at time.Time, is bool, err error) {
	var s struct {
		Time   string `json:"exportTime"`
		Items  *int64 `json:"itemCount"`
		ARN    string `json:"exportArn"`
		Format string `json:"outputFormat"`
		Type   string `json:"exportType"`
	}
	if err := json.Unmarshal(text, &s); err != nil || s.ARN == "" {
		return 0, at, false, nil
	}
	at, _ = time.Parse(time.RFC3339Nano, s.Time)
	switch {
	case s.Items == nil:
		return 0, at, true, errors.New("it does not state the number of items; is the file complete?")
	case s.Format != "DYNAMODB_JSON":
		return 0, at, true, fmt.Errorf("the export is in %s; export the table as DYNAMODB_JSON", s.Format)
	case s.Type != "" && s.Type != "FULL_EXPORT":
		return 0, at, true, fmt.Errorf("the export is a %s, which holds changes; make a full export", s.Type)
	}
	return *s.Items, at, true, nil
}

// maxListBytes is the size of the largest list of an export that is read. Each part takes some 200 bytes of it.
const maxListBytes = 64 << 20

func (e *expander) list(ctx context.Context, name string) ([]byte, error) {
	sub := newExpander(e.options)
	sub.plain = true
	if err := sub.argument(ctx, name, ""); err != nil {
		return nil, err
	}
	if len(sub.set.Items) != 1 {
		return nil, fmt.Errorf("open input %s: it matches %d inputs", Redact(name), len(sub.set.Items))
	}
	r, err := sub.set.Items[0].Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxListBytes+1))
	if err == nil && len(text) > maxListBytes {
		err = fmt.Errorf("open input %s: it is longer than %d MiB", Redact(name), maxListBytes>>20)
	}
	return text, err
}
