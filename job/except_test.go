package job

import (
	"strings"
	"testing"
)

// odd are tables of a database of which some have names that no load can have.
var odd = []string{"mysql://h/shop?table=a", "mysql://h/shop?table=we%60ird.na+me", "mysql://h/shop?table=1st", "mysql://h/shop?table=Items", "mysql://h/shop?table=items",
	"mysql://h/shop?table=lock", "mysql://h/shop?table=%C3%BCn%C3%AF", "mysql://h/shop?table=-x", "mysql://h/shop?table=we_ird.na_me"}

func TestATableThatNoLoadCanBeMadeForKeepsNoOtherFromBeingLoaded(t *testing.T) {
	f, err := prepare("version: 1\nloads:\n  \"{table}\": {from: \"mysql://h/shop?table={table}\", table: \"{table}\"}", odd...)
	must(t, err)
	want := map[string]string{
		"a": "", "Items": "", "items-2": `items: another load's name has the same letters`, "1st": "want letters, digits and underscores, not starting with a digit", "_x": "-x: that is not a name of a load",
		"lock-2": "lock: that is not a name of a load", "we_ird.na_me": "not for the table we`ird.na me; leave it out with except: [\"we`ird.na me\"]; to load it, give it a load of its own with another name and table:",
		"__n__": "not for the table ünï", "we_ird.na_me-2": "not for the table we_ird.na_me",
	}
	for _, l := range f.Loads {
		part, ok := want[l.Name]
		if !ok || (part == "") != (l.Refused == "") || !strings.Contains(l.Refused, part) {
			t.Errorf("load %s is refused: %q", l.Name, l.Refused)
		}
		delete(want, l.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no loads %v", want)
	}
}

func TestWhatExceptNamesIsLeftOut(t *testing.T) {
	const job = "version: 1\nloads:\n  \"{table}\": {from: \"mysql://h/shop?table={table}\", table: \"{table}\", except: [\"we`ird*\", \"??n\", we_*, 1st, Items, lock, \"-x\", ünï, nothere]}\n"
	f, err := prepare(job+"  weird: {from: \"mysql://h/shop?table=we%60ird.na+me\", table: weird}", odd...)
	must(t, err)
	var names []string
	for _, l := range f.Loads {
		if l.Refused != "" {
			t.Errorf("%s is refused: %s", l.Name, l.Refused)
		}
		names = append(names, l.Name+" from "+strings.Join(l.From, ","))
	}
	if got, want := strings.Join(names, "; "), "a from mysql://h/shop?table=a; items from mysql://h/shop?table=items; weird from mysql://h/shop?table=we%60ird.na+me"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, tt := range []struct{ job, wants string }{
		{"version: 1\nloads:\n  \"{t}\": {from: \"d/{t}.csv\", except: \"*\"}", "except leaves out all that from finds"},
		{"version: 1\nloads:\n  plain: {from: d/a.csv, except: [b]}", "the name has no part such as {table}"},
		{"version: 1\ndefaults: {except: [b]}\nloads:\n  plain: {from: d/a.csv}", "it says what one load is"},
	} {
		if _, err := prepare(tt.job, "d/a.csv"); err == nil || !strings.Contains(err.Error(), tt.wants) {
			t.Errorf("%s: %v, want %q", tt.job, err, tt.wants)
		}
	}
	if f, err = prepare("version: 1\nloads:\n  \"{t}\": {from: \"d/{t}.csv\", except: [b, tmp_*]}", "d/a.csv", "d/b.csv", "d/tmp_1.csv"); err != nil || len(f.Loads) != 1 || f.Loads[0].Name != "a" {
		t.Errorf("%v, %v", f, err)
	}
}
