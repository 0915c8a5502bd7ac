package commands

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"example.com/tsimport/internal/conformance"
)

// nightTable is a table of the job, and what its sender delivers.
type nightTable struct {
	name, keys string // keys are further ones of the load in the job
	header     string
	once       bool // a row may not be sent twice: it is numbered or added
	reload     bool // changed files are loaded again
	settle     time.Duration

	files  map[string]*delivery // that are there now, by name
	serial int
	judged
}

func nightTables() []*nightTable {
	const types = ", type: {item: string, n: integer}}"
	plain := "pk: [id:integer]"
	all := []*nightTable{
		{name: "orders", keys: plain + ", columns: [id, item, n]" + types},
		{name: "items", keys: plain + types},
		{name: "prices", keys: plain + ", reload-changed: true" + types, reload: true},
		{name: "stock", keys: plain + ", files-by: time, settle-files: 10m" + types, settle: 10 * time.Minute},
		{name: "visits", keys: plain + ", mode: increment, type: {n: integer}}", header: "id,n\n", once: true},
		{name: "journal", keys: "pk: [shop, number:auto], type: {shop: string, ref: string, n: integer}}",
			header: "shop,ref,n\n", once: true},
	}
	for _, t := range all {
		t.files = map[string]*delivery{}
		if t.header == "" {
			t.header = "id,item,n\n"
		}
	}
	return all
}

type flaw string

const (
	sound   flaw = ""
	cut     flaw = "cut"
	columns flaw = "columns"
	errorsy flaw = "errors" // more bad rows than the limit
	blank   flaw = "blank"  // it has not a byte
)

type delivery struct {
	name    string
	body    []byte
	rows    []nightRow
	flaw    flaw
	changed time.Time
	arrived int    // the night before which it was delivered so
	before  []byte // what a cut file was made of
	whole   []nightRow
}

type nightRow struct {
	key, value string
	bad        bool
}

func (d *delivery) rejects() (n int) {
	for _, r := range d.rows {
		if r.bad {
			n++
		}
	}
	return n
}

func (s *season) content(t *nightTable, serial, version int) *delivery {
	d := &delivery{}
	bad := 0
	switch s.intn(8) {
	case 0:
		bad = s.intn(101) // percent
	case 1:
		bad = 5
	}
	var b strings.Builder
	b.WriteString(t.header)
	latin := s.intn(4) == 0
	for i := range 1 + s.intn(25) {
		id, n := serial*1000+i, version*1000+i
		item, count := fmt.Sprintf("v%d", version), fmt.Sprint(n)
		r := nightRow{key: fmt.Sprint(id), value: item + "/" + count}
		if r.bad = s.intn(100) < bad; r.bad && latin && t.header == "id,item,n\n" {
			item = "caf\xe9"
		} else if r.bad {
			count = "x" + count
		}
		switch t.name {
		case "visits":
			fmt.Fprintf(&b, "%d,%s\n", id, count)
			r.value = "/" + count
		case "journal":
			shop := []string{"east", "west"}[id%2]
			fmt.Fprintf(&b, "%s,%d,%s\n", shop, id, count)
			r.value = shop + "/" + count
		default:
			fmt.Fprintf(&b, "%d,%s,%s\n", id, item, count)
		}
		d.rows = append(d.rows, r)
	}
	d.body = []byte(b.String())
	if d.rejects()*10 > len(d.rows) {
		d.flaw = errorsy
	}
	if s.intn(10) == 0 && !latin { // which says so by its first bytes
		d.body = wide(b.String())
	}
	return d
}

func wide(text string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

func packed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return b.Bytes()
}

func (s *season) put(t *nightTable, d *delivery, at time.Time) {
	d.changed, d.arrived = at, s.night
	s.delivered++
	s.says("%s: %s %q changed %s, %d rows, %d bad", map[bool]string{true: "replaced",
		false: "delivered"}[t.files[d.name] != nil], filepath.Base(d.name), d.flaw, at, len(d.rows), d.rejects())
	t.files[d.name] = d
	must(s.t, os.WriteFile(d.name, d.body, 0o600))
	must(s.t, os.Chtimes(d.name, at, at))
}

func (s *season) withdraw(t *nightTable, d *delivery) {
	s.says("withdrawn: %s", filepath.Base(d.name))
	delete(t.files, d.name)
	must(s.t, os.Remove(d.name))
}

// fresh is a new file; the series has gaps, and some are late: their names come before others.
func (s *season) fresh(t *nightTable) *delivery {
	t.serial += 1 + s.intn(3)
	serial := t.serial
	d := s.content(t, serial, 1)
	d.name = filepath.Join(s.in, fmt.Sprintf("%s-%c%05d.csv", t.name, 'a'+rune(s.intn(3)), serial))
	if s.intn(4) == 0 {
		d.name, d.body = d.name+".gz", packed(d.body)
	}
	return d
}

func (s *season) deliver(t *nightTable) {
	now := s.world
	for range s.intn(3) {
		s.put(t, s.fresh(t), now.Add(-time.Duration(s.intn(300))*time.Minute))
	}
	if s.night == 0 {
		for range 2 {
			d := s.fresh(t)
			for d.flaw != sound || d.rejects() > 0 {
				d = s.fresh(t)
			}
			s.put(t, d, now.Add(-time.Hour))
		}
		for _, d := range t.files {
			if d.flaw != sound {
				s.withdraw(t, d)
			}
		}
		return
	}
	if s.intn(3) == 0 {
		s.mishap(t, now)
	}
}

func (s *season) mishap(t *nightTable, now time.Time) {
	names := slices.Sorted(maps.Keys(t.files))
	if len(names) == 0 {
		return
	}
	old := t.files[names[s.intn(len(names))]]
	settled := !t.once || !s.unclean // or an unfinished load's input may not change
	switch s.intn(9) {
	case 8: // what was bad is corrected in a file of another name
		if old.flaw != errorsy || t.once || t.bad[old.name].body != string(old.body) ||
			t.bad[old.name].changed != old.changed {
			return
		}
		d := s.fresh(t)
		s.replace(t, &delivery{name: d.name, rows: old.rows}, now)
	case 0: // cut
		d := s.fresh(t)
		if !strings.HasSuffix(d.name, ".gz") {
			d.name, d.body = d.name+".gz", packed(d.body)
		}
		d.before, d.whole, d.flaw = d.body, d.rows, cut
		d.body = d.body[:12+s.intn(len(d.body)-12)]
		s.put(t, d, now.Add(-20*time.Minute))
	case 1: // of other columns
		d := s.fresh(t)
		d.flaw, d.name = columns, strings.TrimSuffix(d.name, ".gz")
		text := strings.Replace(t.header, "n\n", "m\n", 1)
		for _, r := range d.rows {
			text += r.key + strings.Repeat(",1", strings.Count(text[:strings.Index(text, "\n")], ",")) + "\n"
		}
		d.body, d.rows = []byte(text), nil // of which none is sent
		s.put(t, d, now.Add(-20*time.Minute))
	case 2: // without a byte
		d := s.fresh(t)
		d.flaw, d.name, d.body, d.rows = blank, strings.TrimSuffix(d.name, ".gz"), nil, nil
		s.put(t, d, now.Add(-20*time.Minute))
	case 3: // replaced, which mends a file or changes it
		if !settled {
			return
		}
		s.replace(t, old, now)
	case 4: // withdrawn
		if settled {
			s.withdraw(t, old)
		}
	case 5: // touched
		s.says("touched: %s", filepath.Base(old.name))
		old.changed = now.Add(-15 * time.Minute)
		must(s.t, os.Chtimes(old.name, old.changed, old.changed))
	case 6: // again under another name
		d := *old
		d.name = filepath.Join(s.in, t.name+"-"+string('a'+rune(s.intn(3)))+"again"+
			fmt.Sprint(s.night)+filepath.Ext(strings.TrimSuffix(old.name, ".gz"))+map[bool]string{
			true: ".gz"}[strings.HasSuffix(old.name, ".gz")])
		if t.files[d.name] == nil {
			s.put(t, &d, now.Add(-20*time.Minute))
		}
	default: // written just now
		s.put(t, s.fresh(t), now.Add(-time.Minute))
	}
}

func (s *season) replace(t *nightTable, old *delivery, now time.Time) {
	d := &delivery{name: old.name}
	switch {
	case old.flaw == cut && s.intn(3) > 0:
		d.body, d.rows = old.before, old.whole
	default:
		var serial int
		if len(old.rows) > 0 && !t.once { // values of rows that are added would be sums
			must(s.t, conformance.ErrorOf(fmt.Sscan(old.rows[0].key, &serial)))
			serial /= 1000
		} else {
			t.serial++
			serial = t.serial
		}
		n := s.content(t, serial, 2+s.night)
		d.body, d.rows, d.flaw = n.body, n.rows, n.flaw
		if strings.HasSuffix(d.name, ".gz") {
			d.body = packed(d.body)
		}
	}
	if d.rejects()*10 > len(d.rows) {
		d.flaw = errorsy
	}
	s.put(t, d, now.Add(-20*time.Minute))
}
