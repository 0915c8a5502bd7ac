package options

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"tsimport/pipeline/plan"
	"tsimport/reader"
	"tsimport/reader/convert"
	"tsimport/reader/csv"
)

// Read reads how inputs are read. The caller adds which files are not data, and the keys of an object store.
func Read(g Given) (r plan.Read, err error) {
	for _, parse := range []func(Given, *plan.Read) error{parseHeader, parseDialect, parseValues} {
		if err := parse(g, &r); err != nil {
			return r, err
		}
	}
	if r.Format, err = reader.ParseFormat(g.String("format")); err != nil {
		return r, fmt.Errorf("--%w", err)
	}
	r.Table = g.String("source-table")
	r.Encoding, r.Flatten = g.String("encoding"), g.Bool("flatten")
	if g.IsSet("columns") {
		if r.Known, err = List(g.String("columns")); err != nil {
			return r, fmt.Errorf("--columns: %w", err)
		}
	}
	for _, f := range g.Texts("exclude") {
		names, err := List(f)
		if err != nil {
			return r, fmt.Errorf("--exclude: %w", err)
		}
		r.Known = append(r.Known, names...)
	}
	r.Find.PathColumns = g.Bool("path-columns")
	return r, nil
}

func parseHeader(g Given, r *plan.Read) (err error) {
	r.NoHeader = g.Bool("no-header")
	if names := g.String("names"); names != "" {
		if !r.NoHeader {
			return errors.New("--names needs --no-header")
		}
		if r.Names, err = List(names); err != nil {
			return fmt.Errorf("--names: %w", err)
		}
	}
	if r.HeaderLine = g.Int("skip-lines") + 1; r.HeaderLine < 1 {
		return errors.New("--skip-lines: want 0 or more")
	}
	return nil
}

// DialectFlags are the options that say how the records of CSV are written.
var DialectFlags = []string{"dialect", "delimiter", "quote", "escape", "comment", "record-end"}

func parseDialect(g Given, r *plan.Read) (err error) {
	given := slices.ContainsFunc(DialectFlags[1:], g.IsSet)
	name := g.String("dialect")
	if name == "auto" {
		if given {
			return errors.New("--dialect auto finds delimiter, quote and escape itself; give either it or them")
		}
		r.Sniff = true
		return nil
	}
	d, emptyIsText, known := csv.Named(name)
	switch {
	case name != "" && !known:
		return fmt.Errorf("--dialect %q: want auto, %s", name, strings.Join(csv.Programs, ", "))
	case name == "" && !given:
		return nil
	}
	if !g.IsSet("empty") {
		r.Convert.EmptyIsText = emptyIsText
	}
	if g.IsSet("comment") {
		d.Comment = g.String("comment")
	}
	for flag, to := range map[string]*string{"delimiter": &d.Delimiter, "record-end": &d.RecordEnd} {
		if !g.IsSet(flag) {
			continue
		}
		if *to, err = csv.Unescape(g.String(flag)); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		if *to == "" {
			return fmt.Errorf("--%s: want at least one character", flag)
		}
	}
	for flag, to := range map[string]*byte{"quote": &d.Quote, "escape": &d.Escape} {
		if known && !g.IsSet(flag) {
			continue
		}
		if *to, err = oneByte(flag, g.String(flag)); err != nil {
			return err
		}
	}
	if known && g.IsSet("escape") {
		d.SetEscape(d.Escape)
	}
	checked := d
	checked.Delimiter = cmp.Or(d.Delimiter, ",") // else known when the input's name is
	if err := checked.Check(); err != nil {
		return fmt.Errorf("--delimiter, --quote, --escape, --comment and --record-end: %w", err)
	}
	r.Dialect = d
	return nil
}

func oneByte(flag, text string) (byte, error) {
	if text == "none" || text == "" {
		return 0, nil
	}
	text, err := csv.Unescape(text)
	if err != nil || len(text) != 1 {
		return 0, fmt.Errorf("--%s %q: want one single-byte character, or none", flag, text)
	}
	return text[0], nil
}

func parseValues(g Given, r *plan.Read) error {
	nulls := g.Texts("null")
	if r.Dialect.Escape == '\\' {
		// Such a text's \N is known to be null where it stands; what reads \N once escapes are undone is text.
		nulls = slices.DeleteFunc(slices.Clone(nulls), func(n string) bool { return n == `\N` })
	}
	r.Convert.Nulls, r.Convert.Trim, r.Convert.VersionColumn = nulls, g.Bool("trim"), g.String("version-column")
	r.Convert.QuotedNulls = g.Texts("quoted-null")
	r.TrimNames = r.Convert.Trim
	switch g.String("ragged") {
	case "reject":
	case "pad":
		r.Convert.Ragged = convert.PadRagged
	case "truncate":
		r.Convert.Ragged = convert.TruncateRagged
	default:
		return fmt.Errorf("--ragged %q: want reject, pad or truncate", g.String("ragged"))
	}
	switch g.String("missing") {
	case "", "refuse": // commands that look at files do not have it
	case "null":
		r.Missing, r.Convert.Missing = true, true
	default:
		return fmt.Errorf("--missing %q: want refuse or null", g.String("missing"))
	}
	for flag, set := range map[string]*bool{"empty": &r.Convert.EmptyIsText, "quoted-empty": &r.Convert.QuotedNull} {
		switch text := g.String(flag); {
		case text != "null" && text != "string":
			return fmt.Errorf("--%s %q: want null or string", flag, text)
		case flag == "empty":
			*set = text == "string" || !g.IsSet(flag) && *set // as the dialect says
		default:
			*set = text == "null"
		}
	}
	return nil
}
