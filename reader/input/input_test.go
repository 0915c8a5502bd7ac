package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/ratelimit"
)

// soon retries failed requests at once.
var soon = Retry{Attempts: 4, Backoff: ratelimit.Backoff{Base: time.Microsecond, Max: time.Millisecond}}

var must = conformance.Must

// tree creates files in a new folder and makes it the working directory. Names that end in / are folders.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o755))
		} else {
			must(t, os.WriteFile(path, []byte("in "+name), 0o644))
		}
	}
	t.Chdir(dir)
	return dir
}

func expand(t *testing.T, o Options, args ...string) *Set {
	t.Helper()
	set, err := Expand(t.Context(), args, o)
	conformance.MustEqual(t, err, nil, "expand %q", args)
	return set
}

func names(set *Set) []string {
	var all []string
	for _, i := range set.Items {
		all = append(all, i.Name)
	}
	return all
}

func wantNames(t *testing.T, set *Set, want ...string) {
	t.Helper()
	conformance.Same(t, names(set), want, "inputs")
}

// wantError checks the kind and text of an error. It must be one line without the secret that tests use.
func wantError(t *testing.T, err error, is error, parts ...string) {
	t.Helper()
	conformance.MustTrue(t, err != nil, "no error, want one with %q", parts)
	conformance.True(t, !strings.Contains(err.Error(), "\n") && !strings.Contains(err.Error(), "geheim"),
		"error of several lines, or with a secret: %q", err)
	for _, part := range parts {
		conformance.Contains(t, err.Error(), part, "error %q does not say", err)
	}
	conformance.True(t, is == nil || errors.Is(err, is), "error %q is not %q", err, is)
}

func readAll(t *testing.T, i *Item) string {
	t.Helper()
	r := conformance.Try(i.Open(t.Context())).Must(t)
	defer r.Close()
	return string(conformance.Try(io.ReadAll(r)).Must(t))
}

func wantText(t *testing.T, i *Item, want string) {
	t.Helper()
	conformance.Equal(t, readAll(t, i), want, "contents read")
}

func TestHiddenFilesAreSkippedUnlessNamed(t *testing.T) {
	tree(t, "d/_SUCCESS", "d/.x.crc", "d/_temporary/0/p.csv", "d/.git/c", "d/_day=1/a.csv", "d/b.csv", "d/c.json")
	wantNames(t, expand(t, Options{}, "d"), "d/_day=1/a.csv", "d/b.csv", "d/c.json")
	wantNames(t, expand(t, Options{}, "d/_SUCCESS", "d/_temporary"), "d/_SUCCESS", "d/_temporary/0/p.csv")
	wantNames(t, expand(t, Options{}, "d/*"), "d/_day=1/a.csv", "d/b.csv", "d/c.json")
	wantNames(t, expand(t, Options{}, "d/**/*.csv"), "d/_day=1/a.csv", "d/b.csv")
	wantNames(t, expand(t, Options{}, "d/_temporary/**/*.csv"), "d/_temporary/0/p.csv")
	wantNames(t, expand(t, Options{Extensions: []string{".json"}}, "d"), "d/c.json")
	wantNames(t, expand(t, Options{Extensions: []string{".json"}}, "d/b*"), "d/b.csv")
	_, err := Expand(t.Context(), []string{"d/_temporary"}, Options{Extensions: []string{".json"}})
	wantError(t, err, fs.ErrNotExist, "d/_temporary", ".json")
}

func TestGlobsMatchNestedFilesAndFolders(t *testing.T) {
	tree(t, "d/1.csv", "d/e/2.csv", "d/e/f/3.csv", "d/e/f/4.txt", "d/x.csv/part-0", "other/5.csv")
	for pattern, want := range map[string][]string{
		"d/**/*.csv":          {"d/1.csv", "d/e/2.csv", "d/e/f/3.csv", "d/x.csv/part-0"},
		"**/[34].*":           {"d/e/f/3.csv", "d/e/f/4.txt"},
		"d/*.csv":             {"d/1.csv", "d/x.csv/part-0"},
		"d/**":                {"d/1.csv", "d/e/2.csv", "d/e/f/3.csv", "d/e/f/4.txt", "d/x.csv/part-0"},
		"{d/1,other/5}.csv":   {"d/1.csv", "other/5.csv"},
		"./o*/../d/[0-9].csv": {"d/1.csv"},
	} {
		set := expand(t, Options{}, pattern)
		conformance.Same(t, names(set), want, "%s: inputs", pattern)
		conformance.Equal(t, len(set.Warnings), 0, "%s: warnings %q", pattern, set.Warnings)
	}
}

func TestExistingNameIsNotGlob(t *testing.T) {
	tree(t, "a[1].csv", "a1.csv", "d*/x.csv", "dd/y.csv", "a[.csv")
	wantNames(t, expand(t, Options{}, "a[1].csv", "d*", "a[.csv"), "a[1].csv", "d*/x.csv", "a[.csv")
	wantNames(t, expand(t, Options{}, `a\[1\].csv`, "a[0-9].csv"), "a[1].csv", "a1.csv")
}

func TestMissingInputErrorNamesIt(t *testing.T) {
	must(t, os.Symlink("gone", filepath.Join(tree(t, "empty/", "f"), "link")))
	for arg, part := range map[string]string{
		"no.csv": "no.csv", "no/*.csv": "matches none", "x[.csv": "brackets", "empty": "no files", "link": "link to gone",
		"@no.txt": "no.txt", "empty/**": "matches none", "": "no such file",
	} {
		wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{"f", arg}, Options{})), fs.ErrNotExist, part)
	}
	wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{"f/g"}, Options{})), nil, "f/g")
	wantError(t, conformance.ErrorOf(Expand(t.Context(), nil, Options{})), nil, "none given")
	_, err := Expand(t.Context(), []string{"s3://b/k?X-Amz-Signature=abc"}, Options{})
	wantError(t, err, nil, "s3", "xxxxx")
}

func TestRepeatedInputIsReadOnceWithWarning(t *testing.T) {
	dir := tree(t, "d/a.csv", "d/b.csv")
	set := expand(t, Options{Stdin: strings.NewReader("")}, "d/a.csv", "-", "d//a.csv", dir+"/d", "d/*", "-")
	wantNames(t, set, "d/a.csv", "-", filepath.Join(dir, "d", "b.csv"))
	conformance.True(t, len(set.Warnings) == 4 && strings.Contains(set.Warnings[0], "d//a.csv is named twice") &&
		strings.Contains(set.Warnings[2], "d/*: 2 of its inputs"),
		"warnings %q", set.Warnings)
}

func TestLinksToFilesButNotToNestedFoldersAreFollowed(t *testing.T) {
	tree(t, "real/a.csv", "d/b.csv")
	for name, to := range map[string]string{"d/l.csv": "../real/a.csv", "d/folder": "../real", "d/up": "..", "top": "d"} {
		must(t, os.Symlink(to, name))
	}
	for _, arg := range []string{"d", "d/**"} {
		set := expand(t, Options{}, arg)
		wantNames(t, set, "d/b.csv", "d/l.csv")
		conformance.True(t, len(set.Warnings) == 2 && strings.Contains(set.Warnings[0], "d/folder is a link to a folder"),
			"%s: warnings %q", arg, set.Warnings)
	}
	wantNames(t, expand(t, Options{}, "top"), "top/b.csv", "top/l.csv")
	wantNames(t, expand(t, Options{}, "d/f*/*.csv"), "d/folder/a.csv")
}

func TestStandardInputIsReadOnce(t *testing.T) {
	i := expand(t, Options{Stdin: strings.NewReader("abc")}, "-").Items[0]
	conformance.True(t, !i.Seekable() && i.Size == -1 && readAll(t, &i) == "abc", "standard input is %+v", i)
	again := i
	wantError(t, conformance.ErrorOf(again.Open(t.Context())), nil, "twice")
}

func TestManifestNamesAllKindsOfInputs(t *testing.T) {
	dir := tree(t, "lists/beside.csv", "lists/both.csv", "both.csv", "d/1.csv", "d/2.csv", "lists/g[/1.csv")
	list := "\ufeff# comment\r\n\r\n  both.csv \r\nbeside.csv\nd\n-\ng[[]/*.csv\n" + filepath.Join(dir, "d", "?.csv")
	must(t, os.WriteFile("lists/l.txt", []byte(list), 0o644))
	set := expand(t, Options{Stdin: strings.NewReader("")}, "@lists/l.txt")
	wantNames(t, set, "both.csv", "lists/beside.csv", "d/1.csv", "d/2.csv", "-", "lists/g[/1.csv")
	conformance.Equal(t, len(set.Warnings), 1, "warnings %q", set.Warnings)
}

func TestUnusableManifestErrorsNameLine(t *testing.T) {
	tree(t, "a.csv", "d/1", "d/2")
	for text, part := range map[string]string{
		"":                   "lists no inputs",
		"# only\n\n":         "lists no inputs",
		"a.csv\n\ngone.csv":  "line 3: open input gone.csv",
		"@other.txt":         "cannot name another",
		"PAR1\x00\x00":       "NUL bytes",
		"a.csv\nhttp://[x/y": "line 2",
	} {
		must(t, os.WriteFile("l.txt", []byte(text), 0o644))
		wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{"@l.txt"}, Options{})), nil, "l.txt", part)
	}
	must(t, os.WriteFile("l.txt", make([]byte, maxLineBytes+1), 0o644))
	for arg, part := range map[string]string{"@l.txt": "exceeds", "@-": "a file", "@": "a file", "@d": "2 inputs"} {
		wantError(t, conformance.ErrorOf(Expand(t.Context(), []string{arg}, Options{})), nil, part)
	}
}

func TestChangedFileIsAnError(t *testing.T) {
	tree(t, "a.csv")
	i := expand(t, Options{}, "a.csv").Items[0]
	part := conformance.Try(i.OpenAt(t.Context())).Must(t)
	defer part.Close()
	whole := conformance.Try(i.Open(t.Context())).Must(t)
	defer whole.Close()
	must(t, os.Truncate("a.csv", 3))
	n, err := part.ReadAt(make([]byte, 10), 1)
	wantError(t, err, ErrChanged, "a.csv", "ends at byte 3")
	conformance.Equal(t, n, 2, "bytes")
	wantError(t, conformance.ErrorOf(io.ReadAll(whole)), ErrChanged, "a.csv", "ends at byte 3")
	wantError(t, conformance.ErrorOf(i.Open(t.Context())), ErrChanged, "a.csv")

	i = expand(t, Options{}, "a.csv").Items[0]
	whole = conformance.Try(i.Open(t.Context())).Must(t)
	defer whole.Close()
	must(t, os.WriteFile("a.csv", []byte("longer"), 0o644))
	wantError(t, conformance.ErrorOf(io.ReadAll(whole)), ErrChanged, "a.csv", "now has more")
}

func TestReadAtKeepsReaderAtContract(t *testing.T) {
	tree(t, "a.csv")
	i := expand(t, Options{}, "a.csv").Items[0]
	checkReaderAt(t, &i, "in a.csv")
}

// checkReaderAt compares every range, including some beyond the end, with the content. Then it reads after Close.
func checkReaderAt(t *testing.T, i *Item, content string) {
	t.Helper()
	r := conformance.Try(i.OpenAt(t.Context())).Must(t)
	for off := range len(content) + 2 {
		for n := range len(content) + 2 - off {
			b := make([]byte, n)
			got, err := r.ReadAt(b, int64(off))
			want := content[min(off, len(content)):min(off+n, len(content))]
			conformance.MustTrue(t, string(b[:got]) == want && (got < n) == (err == io.EOF) && (err == nil || err == io.EOF),
				"%d bytes at %d: %q, %v; want %q", n, off, b[:got], err, want)
		}
	}
	conformance.Refused(t, conformance.ErrorOf(r.ReadAt(make([]byte, 1), -1)), "", "read before the start")
	must(t, r.Close())
	_, err := r.ReadAt(make([]byte, 1), 0)
	conformance.True(t, content == "" || errors.Is(err, fs.ErrClosed), "read after close: %v", err)
}

func TestCancelledContextEndsReads(t *testing.T) {
	tree(t, "d/a.csv")
	i := expand(t, Options{}, "d").Items[0]
	ctx, cancel := context.WithCancel(t.Context())
	whole := conformance.Try(i.Open(ctx)).Must(t)
	defer whole.Close()
	part := conformance.Try(i.OpenAt(ctx)).Must(t)
	defer part.Close()
	cancel()
	conformance.Is(t, conformance.ErrorOf(whole.Read(make([]byte, 1))), context.Canceled, "a read in order")
	conformance.Is(t, conformance.ErrorOf(part.ReadAt(make([]byte, 1), 0)), context.Canceled, "a read at an offset")
	conformance.Is(t, conformance.ErrorOf(Expand(ctx, []string{"d"}, Options{})), context.Canceled, "a listing")
}

func TestStoppableReaderReturnsAvailableBytes(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	got, err := io.ReadAll(Stoppable(t.Context(), iotest.HalfReader(strings.NewReader(text))))
	conformance.True(t, err == nil && string(got) == text, "%d of %d bytes, %v", len(got), len(text), err)
	broken := errors.New("broken")
	r := Stoppable(t.Context(), iotest.DataErrReader(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken))))
	got, err = io.ReadAll(r)
	conformance.True(t, errors.Is(err, broken) && string(got) == "abc", "%q, then %v", got, err)
}

func TestBlockedReadEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped by the user")
		from, to := io.Pipe()
		defer to.Close() // ends the abandoned read
		r := Stoppable(ctx, from)
		ended := make(chan error)
		go func() { ended <- conformance.ErrorOf(r.Read(make([]byte, 1))) }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("the read ended by itself: %v", err)
		default:
		}
		cancel(stopped)
		conformance.Is(t, <-ended, stopped, "the cause")
		conformance.Is(t, conformance.ErrorOf(r.Read(make([]byte, 1))), stopped, "the next read")
	})
}

// TestNonDataFilesAreSkippedUnlessNamed checks which files each form of an argument matches.
func TestNonDataFilesAreSkippedUnlessNamed(t *testing.T) {
	tree(t, "a.csv", "runs/r1/rejects.csv", "runs/r1/attempt-1/rejects.csv", "runs/r2/rejects.csv", "store/data/x",
		"out.csv", "d/b.csv")
	o := Options{NotData: func(name string, folder bool) string {
		switch base := filepath.Base(name); {
		case folder && (base == "r1" || base == "r2" || base == "attempt-1"):
			return "run folder"
		case folder && base == "store":
			return "embedded store"
		case !folder && base == "out.csv":
			return "output"
		}
		return ""
	}}
	const all = "skipped output out.csv, run folder runs/r1, run folder runs/r2, embedded store store; name one to read it"
	for _, tt := range []struct {
		arg, want, warning string
	}{
		{".", "a.csv d/b.csv", all},
		{"*", "a.csv d/b.csv", all},
		{"**", "a.csv d/b.csv", all},
		{"**/*.csv", "a.csv d/b.csv", "skipped output out.csv, run folder runs/r1, run folder runs/r2; name one to read it"},
		{"{a,out}.csv", "a.csv", "skipped output out.csv; name one to read it"},
		{"out.csv", "out.csv", ""},
		{"runs/r1/rejects.csv", "runs/r1/rejects.csv", ""},
		{"runs/r1/*.csv", "runs/r1/rejects.csv", ""},
		{"runs/r1/attempt-1", "runs/r1/attempt-1/rejects.csv", ""},
		{"runs/r1", "runs/r1/rejects.csv", "skipped run folder runs/r1/attempt-1; name one to read it"},
		{"store", "store/data/x", ""},
	} {
		set := expand(t, o, tt.arg)
		conformance.Equal(t, strings.Join(names(set), " "), tt.want, "%s", tt.arg)
		conformance.Equal(t, strings.Join(set.Warnings, "\n"), tt.warning, "%s: warns", tt.arg)
	}
	for _, arg := range []string{"runs", "runs/*/rejects.csv", "runs/r?"} {
		_, err := Expand(t.Context(), []string{arg}, o)
		conformance.Refused(t, err, "run folder runs/r1, run folder runs/r2", "%s", arg)
	}
}

// TestLeftoversAreSkippedUnlessNamed checks which leftovers of interrupted programs, and which earlier versions of
// files, each form of an argument matches.
func TestLeftoversAreSkippedUnlessNamed(t *testing.T) {
	files := []string{
		"d/a.csv", "d/a.csv~", "d/b.CSV.BAK", "d/c.csv.orig", "d/d.swp", "d/e.csv.tmp", "d/f.part", "d/g.partial",
		"d/h.crdownload", "d/i.filepart", "d/j.csv._COPYING_", "d/k.inprogress", "d/~$l.csv", "d/m.csv.tmp.gz", "d/n.tmpx",
		"d/o.bak/p.csv", "d/bakery", "d/part-0", "only/x.csv.tmp", "only-new/y.csv", "back/z.csv", "back/z.csv~",
	}
	tree(t, files...)
	lake := newS3(t, files...).at
	const kept = "d/a.csv d/bakery d/n.tmpx d/o.bak/p.csv d/part-0"
	for _, tt := range []struct {
		arg, want, warning string
	}{
		{"d", kept, "skipped unfinished or replaced files, by their names (13): "},
		{"d/*", kept, "skipped unfinished or replaced files, by their names (13): "},
		{"**/*.csv*", "back/z.csv d/a.csv d/o.bak/p.csv only-new/y.csv",
			"skipped unfinished or replaced files, by their names (8): "},
		{"d/*.csv", "d/a.csv", "skipped unfinished or replaced files, by their names (1): "},
		{"d/*~", "d/a.csv~", ""},
		{"d/*.bak", "d/o.bak/p.csv", ""},
		{"d/*.{csv,BAK}", "d/a.csv d/b.CSV.BAK", "skipped unfinished or replaced files, by their names (1): "},
		{"d/*.tmp*", "d/n.tmpx", "skipped unfinished or replaced files, by their names (2): "},
		{"d/*.tmp.gz", "d/m.csv.tmp.gz", ""},
		{"d/~$*", "d/~$l.csv", ""},
		{"d/e.csv.tmp", "d/e.csv.tmp", ""},
		{"only", "", "skipped "},
		{"only/*", "", ""},
	} {
		for _, at := range []string{"", lake} {
			set, err := Expand(t.Context(), []string{at + tt.arg}, Options{Retry: soon})
			if tt.want == "" {
				wantError(t, err, fs.ErrNotExist, tt.arg, tt.warning, "only/x.csv.tmp")
				continue
			}
			conformance.MustEqual(t, err, nil, "%s", at+tt.arg)
			got := strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(names(set))), " "), lake, "")
			conformance.True(t, got == strings.Join(slices.Sorted(strings.FieldsSeq(tt.want)), " "), "%s: %s", at+tt.arg, got)
			got = strings.Join(set.Warnings, "\n")
			conformance.True(t, strings.HasPrefix(got, tt.warning) && (got == "") == (tt.warning == "") &&
				!strings.Contains(got, "\n"), "%s: warns %q, want %q", at+tt.arg, got, tt.warning)
		}
	}
	wantNames(t, expand(t, Options{Extensions: []string{".bak", ".csv"}}, "d"), "d/a.csv", "d/b.CSV.BAK", "d/o.bak/p.csv")
	// A file that may be incomplete counts as unread, so that nothing is deleted because of it. An older version does not.
	for arg, unread := range map[string]int{"d": 1, "back": 0} {
		set := expand(t, Options{}, arg)
		conformance.True(t, len(set.Unread) == unread && len(set.Warnings) == 1, "%s: %q, %q", arg, set.Unread, set.Warnings)
	}
}

func TestCompressedTwinGivesWarning(t *testing.T) {
	tree(t, "d/a.csv", "d/a.csv.gz", "d/b.csv.zst", "e/a.csv", "f/c.csv.gz", "f/c.csv.zst", "f/d.GZ", "f/d")
	for arg, want := range map[string]string{
		"d":    "d/a.csv and d/a.csv.gz seem to be the same file",
		"f":    "f/c.csv.gz and f/c.csv.zst, f/d and f/d.GZ seem to be the same file",
		"e":    "",
		"*/a*": "d/a.csv and d/a.csv.gz seem",
	} {
		got := strings.Join(expand(t, Options{}, arg).Warnings, "\n")
		conformance.True(t, strings.HasPrefix(got, want) && (got == "") == (want == ""), "%s: %q, want %q", arg, got, want)
	}
}

func TestPartitionNamesAndValuesAreDecoded(t *testing.T) {
	for folder, want := range map[string]Column{
		"ts=2024-01-01 10%3A00%3A00": {Name: "ts", Value: "2024-01-01 10:00:00"},
		"a%3Db=c%2Fd":                {Name: "a=b", Value: "c/d"},
		"p=100%":                     {Name: "p", Value: "100%"},
		"p=%zz%20+":                  {Name: "p", Value: "%zz +"},
		"p=":                         {Name: "p"},
		"p=a=b":                      {Name: "p", Value: "a=b"},
		"p=%E4%B8%AD":                {Name: "p", Value: "中"},
	} {
		got, ok := partition(folder)
		conformance.True(t, ok && got == want, "%s: %+v, want %+v", folder, got, want)
	}
	for _, folder := range []string{"plain", "=v", ""} {
		_, ok := partition(folder)
		conformance.True(t, !ok, "%q is a partition", folder)
	}
}

func TestContradictingPartitionFoldersAreRefused(t *testing.T) {
	tree(t, "a/p=1/p=2/x.csv", "b/p=%FF/x.csv")
	for arg, part := range map[string]string{"a": "two folders give p", "b": "not UTF-8"} {
		_, err := Expand(t.Context(), []string{arg}, Options{PathColumns: true})
		wantError(t, err, nil, arg+"/p=", part)
		expand(t, Options{}, arg)
	}
}
