package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tsimport/internal/table"
	"tsimport/lifecycle"
	"tsimport/reader"
)

// TestWhatCannotBeAddedOnceForEachRecordIsRefused: an increment that the service could apply twice, or in another order, or that is
// not exact, ends before the first row.
func TestWhatCannotBeAddedOnceForEachRecordIsRefused(t *testing.T) {
	const text = "id,n,d\na,1,1.5\n"
	for want, set := range map[string]func(*Request){
		"leave --condition out":          func(r *Request) { r.Condition = table.ExpectExist },
		"leave --order none out":         func(r *Request) { r.Order = OrderNone },
		"leave --version-column out":     func(r *Request) { r.Read.Convert.VersionColumn = "n" },
		"a load into several tables":     func(r *Request) { r.Target.Table = "t_{text(id)}" },
		"--at-least-once: it applies to": func(r *Request) { r.AtLeastOnce = true },
		"--look-first: it applies to":    func(r *Request) { r.LookFirst = true },
		"--returned-keys: it applies to": func(r *Request) { r.Returned = true },
		"column d is double":             func(*Request) {},
		"--on-null delete needs":         func(r *Request) { r.DeleteNull = true },
		"--mark-column n:":               func(r *Request) { r.MarkColumn, r.Columns.Exclude = "n", []string{"d"} },
		"at least one attribute column":  func(r *Request) { r.Columns.Exclude = []string{"n", "d"} },
		"column n is string":             func(r *Request) { r.Columns.Types = map[string]Type{"n": {Type: table.String}} },
		"has the auto-increment key column": func(r *Request) {
			r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: "seq", Type: table.Integer, Auto: true})
		},
	} {
		r := ask(file(t, "in.csv", text))
		r.Mode = table.Increment
		set(r)
		refused(t, r, nil, want)
	}
	r := ask(file(t, "in.csv", text))
	r.Mode, r.Columns.Exclude = table.Increment, []string{"d"}
	if p := makes(t, r, nil); p.Mark == "" {
		t.Error("rows that are added to have no mark of the records that were added")
	}
}

func TestTheNamesOfKindsAreReadOrRefused(t *testing.T) {
	for name, want := range map[string]string{"": "0", "table": "0", "strict": "1", "infer": "2", "Table": "--types", "x": "--types"} {
		k, err := ParseKnown(name)
		if err == nil && fmt.Sprint(uint8(k)) != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("types %q: %v, %v", name, k, err)
		}
	}
}

func TestSecretsOfAddressesAreNotShown(t *testing.T) {
	r := &Request{Inputs: []string{"a.csv", "https://ann:pass@host/x.csv?token=abc&page=2"}}
	shown := r.ShownInputs()
	if len(shown) != 2 || shown[0] != "a.csv" || strings.Contains(shown[1], "pass") || strings.Contains(shown[1], "abc") || !strings.Contains(shown[1], "page=2") {
		t.Errorf("%q", shown)
	}
}

func TestWhatAReaderHoldsIsPartOfTheMemory(t *testing.T) {
	for _, memory := range []int64{16 << 20, 64 << 20, 1 << 30, 64 << 30} {
		m, s := ReadingMemory(memory), DivideMemory(memory)
		if m.RecordBytes < 6<<20 || m.RecordBytes > reader.MaxRecordBytes || m.WindowBytes < 8<<20 || m.PageBytes < 16<<20 || m.BlockBytes < 1 {
			t.Errorf("%d MiB: %+v", memory>>20, m)
		}
		if memory >= 64<<20 && (int64(m.WindowBytes) > memory/4 || m.PageBytes > memory/2 || int64(m.BlockBytes) > memory/4) {
			t.Errorf("%d MiB: one reader may hold most of it: %+v", memory>>20, m)
		}
		for _, parsers := range []int{1, 2, 64} {
			if ahead := s.PagesAhead(parsers) * int64(parsers); ahead > s.ReadAhead {
				t.Errorf("%d MiB, %d parsers: %d bytes of pages are read ahead, more than the %d for all", memory>>20, parsers, ahead, s.ReadAhead)
			}
		}
		if limit := MemoryLimit(memory); limit < memory || limit < 2*table.MaxRowBytes {
			t.Errorf("%d MiB: the collector's limit is %d", memory>>20, limit)
		}
	}
}

func TestATemplateIsANameOfAFile(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "orders", "t_{month(at)}": "t_month-at", "{text(a)}": "text-a", "t_{format_time(at, \"2006/01\")}": "t_format-time-at---2006-01-",
	} {
		got := FileName(name)
		if strings.ContainsAny(got, `/\{}"() `) || name == want && got != want || got == "" || strings.HasPrefix(got, "-") || strings.HasSuffix(got, "-") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAPolicyThatDoesNotFitTheTablesIsRefused(t *testing.T) {
	policy, err := lifecycle.Parse("p", []byte("period: month\nclasses:\n- {up_to: 1}\n- {archive: /old}\n"))
	must(t, err)
	for want, set := range map[string]func(*Request){
		"holds no period":           func(*Request) {},
		"--age-policy":              func(r *Request) { r.Target.Table = "t_{text(id)}" },
		"--age-policy: ":            func(r *Request) { r.Target.Table = "t_{day(at)}" },
		"--mode delete writes none": func(r *Request) { r.Target.Table, r.Mode = "t_{month(at)}", table.Delete },
		"--table":                   func(r *Request) { r.Target.Table, r.Target.Policy = "t_{month(at}", nil },
		"--table t_{month(no)}":     func(r *Request) { r.Target.Table, r.Target.Policy = "t_{month(no)}", nil },
	} {
		r := ask(file(t, "in.csv", "id,at\na,2024-05-06\n"))
		r.Target.Policy = policy
		set(r)
		refused(t, r, nil, want)
	}
}

// TestALoadThatGoesToTheArchiveAloneIsWarnedOf: its counts look like those of one that did its work.
func TestALoadThatGoesToTheArchiveAloneIsWarnedOf(t *testing.T) {
	policy, err := lifecycle.Parse("p", []byte("period: month\nclasses:\n- {up_to: 1}\n- {archive: /old}\n"))
	must(t, err)
	for rows, want := range map[string]string{
		"a,2020-05-06\nb,2020-07-01\n": "all 2 records of the sample go to the archive /old, none to a table: they are of t_202005 to t_202007",
		"a,2020-05-06\n":               "they are of t_202005, too old",
		"a,2020-05-06\nb,2024-06-30\n": "",
		"a,never\n":                    "",
	} {
		r := ask(file(t, "in.csv", "id,at\n"+rows))
		r.Target.Table, r.Target.Policy = "t_{month(at)}", policy
		r.Target.PolicyNow = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
		got := ""
		for _, w := range makes(t, r, nil).Warnings {
			if strings.Contains(w, "archive") {
				got += w
			}
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", rows, got, want)
		}
	}
}
