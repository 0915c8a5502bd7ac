package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	_ "time/tzdata" // time zones of --type timestamp(…) on machines that have none

	"github.com/urfave/cli/v2"

	"tsimport/pipeline/plan"
	"tsimport/reader"
	"tsimport/reader/convert"
	"tsimport/reader/csv"
)

const inputsHelp = "A FILE is a file, a folder, a glob with **, - for standard input, @list.txt with a name on each line,\n" +
	"http(s)://… or oss://bucket/prefix. Format and compression (gzip, zstd, bzip2, xz, lz4, snappy) are detected from the content."

// readFlags are the flags of the commands that read inputs.
func readFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Usage: "csv, jsonl, parquet or auto", Value: "auto"},
		&cli.StringFlag{Name: "dialect", Usage: "`NAME` of the program that wrote the file: mysql, postgres, clickhouse, hive, excel, sqlite and others (docs/inputs.md); or auto: detect delimiter, quote and escape from the text, and refuse ambiguous files"},
		&cli.StringFlag{Name: "delimiter", Usage: "`TEXT` between fields, one or more characters; \\t and \\x01 are understood (default: a comma, a tab in .tsv files)"},
		&cli.StringFlag{Name: "quote", Usage: "`CHAR` around fields, or none", Value: `"`},
		&cli.StringFlag{Name: "escape", Usage: "`CHAR` that makes the next character literal (a doubled quote inside quotes always works), or none", Value: "none"},
		&cli.StringFlag{Name: "comment", Usage: "lines that begin with `TEXT` are not records"},
		&cli.StringFlag{Name: "record-end", Usage: "`TEXT` that ends a record instead of a line end, such as '&|' or \\x02 (default: a line end)"},
		&cli.BoolFlag{Name: "header", Usage: "the first record names the columns (this is the default)"},
		&cli.BoolFlag{Name: "no-header", Usage: "the first record is data; columns are named c1, c2, … or by --names"},
		&cli.IntFlag{Name: "header-line", Usage: "`LINE` of the header; lines above it are skipped"},
		&cli.IntFlag{Name: "skip-lines", Usage: "skip the first `N` lines"},
		&cli.StringFlag{Name: "names", Usage: "with --no-header: the columns' names `A,B,C`"},
		&cli.StringFlag{Name: "encoding", Usage: "text encoding: utf-8, gb18030, gbk, utf-16le, utf-16be, big5, shift-jis, latin1, windows-1252, …"},
		&cli.StringFlag{Name: "ragged", Usage: "records with too few or too many fields: reject, pad (missing ones are null) or truncate (surplus ones are dropped)", Value: "reject"},
		&cli.BoolFlag{Name: "trim", Usage: "drop spaces and tabs around unquoted fields"},
		textsFlag("null", "`TEXT` of an unquoted field that means null, in addition to an empty field; may be repeated"),
		&cli.StringFlag{Name: "empty", Usage: "load an unquoted empty field as null or string", Value: "null"},
		&cli.StringFlag{Name: "quoted-empty", Usage: "load a quoted empty field as string or null", Value: "string"},
		&cli.BoolFlag{Name: "flatten", Usage: "load nested values of JSON lines and Parquet as columns a.b.c instead of JSON text"},
		&cli.BoolFlag{Name: "ignore-ts", Usage: "ignore the timestamps in lines of the vendor's own export"},
		&cli.BoolFlag{Name: "path-columns", Usage: "add a column for each folder named name=value to the records below it"},
		&cli.StringFlag{Name: "oss-endpoint", Usage: "`URL` of the object storage service for oss:// (or OSS_ENDPOINT)"},
		&cli.StringFlag{Name: "oss-region", Usage: "`REGION` of the object storage service (or OSS_REGION)"},
	}
}

func parseRead(c *cli.Context) (r plan.Read, err error) {
	for _, parse := range []func(*cli.Context, *plan.Read) error{parseHeader, parseDialect, parseValues} {
		if err := parse(c, &r); err != nil {
			return r, err
		}
	}
	if r.Format, err = reader.ParseFormat(c.String("format")); err != nil {
		return r, fmt.Errorf("--%w", err)
	}
	r.Encoding, r.Flatten, r.IgnoreTS = c.String("encoding"), c.Bool("flatten"), c.Bool("ignore-ts")
	if c.IsSet("columns") {
		if r.Known, err = splitList(c.String("columns")); err != nil {
			return r, fmt.Errorf("--columns: %w", err)
		}
	}
	for _, f := range textsOf(c, "exclude") {
		names, err := splitList(f)
		if err != nil {
			return r, fmt.Errorf("--exclude: %w", err)
		}
		r.Known = append(r.Known, names...)
	}
	r.Find.PathColumns, r.Find.NotData = c.Bool("path-columns"), notData(c)
	r.Find.OSS.Endpoint, r.Find.OSS.Region = c.String("oss-endpoint"), c.String("oss-region")
	r.Find.OSS.Credentials = func(context.Context) (id, secret, token string, err error) {
		provider, err := findCredentials(c)
		if err != nil {
			return "", "", "", err
		}
		keys := provider.GetCredentials()
		return keys.GetAccessKeyID(), keys.GetAccessKeySecret(), keys.GetSecurityToken(), nil
	}
	return r, nil
}

func parseHeader(c *cli.Context, r *plan.Read) (err error) {
	r.NoHeader = c.Bool("no-header") || c.IsSet("header") && !c.Bool("header")
	if r.NoHeader && c.Bool("header") {
		return errors.New("--header and --no-header: give one of them")
	}
	if names := c.String("names"); names != "" {
		if !r.NoHeader {
			return errors.New("--names needs --no-header")
		}
		if r.Names, err = splitList(names); err != nil {
			return fmt.Errorf("--names: %w", err)
		}
	}
	line, skip := c.Int("header-line"), c.Int("skip-lines")
	if line < 0 || skip < 0 || line > 0 && skip > 0 {
		return errors.New("--header-line and --skip-lines: give one of them, 1 or more")
	}
	r.HeaderLine = max(line, skip+1)
	return nil
}

// dialectFlags are the flags that say how the records of CSV are written.
var dialectFlags = []string{"dialect", "delimiter", "quote", "escape", "comment", "record-end"}

func parseDialect(c *cli.Context, r *plan.Read) (err error) {
	given := slices.ContainsFunc(dialectFlags[1:], c.IsSet)
	name := c.String("dialect")
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
	if !c.IsSet("empty") {
		r.Convert.EmptyIsText = emptyIsText
	}
	if c.IsSet("comment") {
		d.Comment = c.String("comment")
	}
	for flag, to := range map[string]*string{"delimiter": &d.Delimiter, "record-end": &d.RecordEnd} {
		if !c.IsSet(flag) {
			continue
		}
		if *to, err = csv.Unescape(c.String(flag)); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		if *to == "" {
			return fmt.Errorf("--%s: want at least one character", flag)
		}
	}
	for flag, to := range map[string]*byte{"quote": &d.Quote, "escape": &d.Escape} {
		if known && !c.IsSet(flag) {
			continue
		}
		if *to, err = oneByte(flag, c.String(flag)); err != nil {
			return err
		}
	}
	if known && c.IsSet("escape") {
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

func parseValues(c *cli.Context, r *plan.Read) error {
	nulls := textsOf(c, "null")
	if r.Dialect.Escape == '\\' {
		// Such a text's \N is known to be null where it stands; what reads \N once escapes are undone is text.
		nulls = slices.DeleteFunc(slices.Clone(nulls), func(n string) bool { return n == `\N` })
	}
	r.Convert.Nulls, r.Convert.Trim, r.Convert.VersionColumn = nulls, c.Bool("trim"), c.String("version-column")
	r.TrimNames = r.Convert.Trim
	switch c.String("ragged") {
	case "reject":
	case "pad":
		r.Convert.Ragged = convert.PadRagged
	case "truncate":
		r.Convert.Ragged = convert.TruncateRagged
	default:
		return fmt.Errorf("--ragged %q: want reject, pad or truncate", c.String("ragged"))
	}
	for flag, set := range map[string]*bool{"empty": &r.Convert.EmptyIsText, "quoted-empty": &r.Convert.QuotedNull} {
		switch text := c.String(flag); {
		case text != "null" && text != "string":
			return fmt.Errorf("--%s %q: want null or string", flag, text)
		case flag == "empty":
			*set = text == "string" || !c.IsSet(flag) && *set // as the dialect says
		default:
			*set = text == "null"
		}
	}
	return nil
}
