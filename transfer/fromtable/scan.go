package fromtable

import (
	"slices"
	"strconv"
	"time"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/tablescan"
)

// OnlyKeys is the note of a command that reads only key columns.
const OnlyKeys = "--columns is empty: only the keys of rows are read"

// Scan translates a command's options into a scan, except for Since and the key bounds. SetBounds adds the bounds.
func Scan(s *options.Command) (to tablescan.Config, err error) {
	if slices.Contains(s.Columns, "") {
		return to, plan.Usagef("--columns: a name is empty; give names with one comma between them")
	}
	if s.Filter != "" {
		to.FilterText = s.Filter
		if to.Filter, to.FilterUses, err = condition.ParseFilter(s.Filter); err != nil {
			return to, plan.Usagef("--filter %s: %v", s.Filter, err)
		}
	}
	if s.Versions != "" && s.Versions != "all" {
		if to.Versions, err = strconv.Atoi(s.Versions); err != nil || to.Versions < 1 || to.Versions > 1<<30 {
			return to, plan.Usagef("--versions %q: want all, or a number of 1 or more", s.Versions)
		}
	}
	if !(s.MaxRCU >= 0) {
		return to, plan.Usagef("--max-rcu %v: want a number above 0, or 0 for no limit", s.MaxRCU)
	}
	if s.Where != "" {
		if to.Where, err = keyexpr.CompileWhere(s.Where); err != nil {
			return to, plan.Usagef("--where: %v", err)
		}
	}
	return to, nil
}

// SetBounds limits a scan to the rows from --from-key to --to-key or with a prefix. It may be called again.
func SetBounds(s *options.Scan, to *tablescan.Config, key []table.KeyColumn) (err error) {
	if s.Prefix != "" {
		if to.From, err = scan.ParseKey(s.Prefix, key); err == nil {
			to.To, err = scan.After(to.From)
		}
		if err != nil {
			return plan.Usagef("the prefix %s: %v", s.Prefix, err)
		}
		from, end := scan.KeyText(to.From), scan.KeyText(to.To)
		if s.FromKey != "" && s.FromKey != from || s.ToKey != "" && s.ToKey != end {
			return plan.Usagef("both a key prefix and a key range are given; leave one of them out")
		}
		s.FromKey, s.ToKey = from, end
		return nil
	}
	for _, f := range []struct {
		flag, text string
		to         *[]table.Value
	}{{"from-key", s.FromKey, &to.From}, {"to-key", s.ToKey, &to.To}} {
		if f.text == "" {
			continue
		}
		if *f.to, err = scan.ParseKey(f.text, key); err != nil {
			return plan.Usagef("--%s: %v", f.flag, err)
		}
	}
	if to.From != nil && to.To != nil && scan.CompareBounds(to.From, to.To) >= 0 {
		return plan.Usagef("--from-key %s --to-key %s: no key is in that range: it ends before it begins; the first is "+
			"inclusive and the last exclusive", s.FromKey, s.ToKey)
	}
	return nil
}

func parseSince(text string) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 && ms < table.MaxTimestamp {
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixMilli() <= 0 {
		return t, plan.Usagef("--since %q: want a time such as 2026-01-31T08:00:00Z, or milliseconds since 1970", text)
	}
	return t.UTC(), nil
}
