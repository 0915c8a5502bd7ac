package pgdump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/tsimport/reader/sqldump"
)

// Is reports whether a text begins like a dump.
func Is(head []byte) bool {
	firsts := []string{"--\n-- PostgreSQL database dump\n", "--\n-- PostgreSQL database cluster dump\n",
		"-- PostgreSQL database dump", "--\r\n-- PostgreSQL database"}
	return slices.ContainsFunc(firsts, func(first string) bool { return bytes.HasPrefix(head, []byte(first)) })
}

// syntax is the syntax of statements under standard_conforming_strings.
var syntax = sqldump.Syntax{Quote: '"', Dollars: true}

// Index finds the tables in a dump. It fails if the text cannot be read. For an incomplete dump it sets Truncated.
func Index(r io.Reader) (*sqldump.Dump, error) {
	x := &index{Indexing: sqldump.NewIndexing(r), domains: map[string]string{},
		composites: map[string][]sqldump.Column{}}
	for {
		line, err := x.Line()
		if err == nil && len(line) > 0 {
			err = x.statement(line)
		}
		if errors.Is(err, io.EOF) {
			d := x.Finish()
			for _, t := range d.Tables {
				if t.From == 0 && t.Refused == "" && len(t.Columns) > 0 && d.Truncated == nil { // even without rows it has a COPY
					t.Refused = "its rows are not in the dump; dump again without --schema-only and --exclude-table-data"
				}
			}
			return d, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

type index struct {
	sqldump.Indexing                             // Schema is used for dumps from before PostgreSQL 10.3
	domains          map[string]string           // by name: types of domains
	composites       map[string][]sqldump.Column // by name: columns of composite types
}

// statement processes a line, and the statement that ends there, if any.
func (x *index) statement(line []byte) error {
	start := x.Offset - int64(len(line))
	if len(x.Text) == 0 {
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0:
			return nil
		case bytes.HasPrefix(trimmed, []byte("--")):
			x.comment(string(trimmed))
			return nil
		case trimmed[0] == '\\' && line[len(line)-1] == '\n':
			return x.command(trimmed, start)
		}
		x.From = start
		x.Lexer = sqldump.Lexer{Syntax: syntax}
	}
	x.Text = append(x.Text, line...)
	if len(x.Text) > sqldump.MaxStatement {
		return fmt.Errorf("at byte %d: a statement without rows is longer than %d MiB", x.From, sqldump.MaxStatement>>20)
	}
	for {
		end := x.Lexer.End(x.Text)
		if end < 0 {
			return nil
		}
		rest := x.Text[end:]
		if err := x.take(x.Text[:end], rest); err != nil {
			return err
		}
		rest = bytes.TrimLeft(rest, " \t\r\n")
		x.Lexer = sqldump.Lexer{Syntax: syntax}
		x.Text = append(x.Text[:0], rest...)
		if len(rest) == 0 || bytes.HasPrefix(rest, []byte("--")) {
			x.Text = x.Text[:0]
			return nil
		}
	}
}

func (x *index) comment(line string) {
	switch {
	case strings.HasSuffix(line, "dump complete"):
		x.Begun = false
	case strings.HasPrefix(line, "-- PostgreSQL database") && strings.HasSuffix(line, "dump"):
		x.Begun = true
	}
}

func (x *index) command(line []byte, at int64) error {
	word, _, _ := strings.Cut(string(line), " ")
	if !slices.Contains([]string{`\connect`, `\restrict`, `\unrestrict`}, word) {
		return fmt.Errorf("at byte %d: %.40q is not a command of a dump", at, line)
	}
	x.Dump.Statements++
	return nil
}

// take processes a complete statement. rest is the text after the statement on its last line.
func (x *index) take(statement, rest []byte) error {
	const enough = 4 << 10 // number of bytes that suffice to recognise a long statement
	tokens := sqldump.Tokens(statement[:min(len(statement), enough)], syntax)
	if len(tokens) > 0 && slices.ContainsFunc([]string{"COPY", "CREATE", "ALTER", "SET"}, tokens[0].Is) {
		tokens = sqldump.Tokens(statement, syntax)
	}
	if after, ok := sqldump.Words(tokens, "COPY"); ok {
		return x.copy(after, rest)
	}
	if x.insert(tokens) {
		return nil
	}
	x.Dump.Statements++
	if after, ok := sqldump.Words(tokens, "CREATE"); ok {
		x.create(after)
	}
	if after, ok := sqldump.Words(tokens, "ALTER", "TABLE"); ok {
		x.alter(after)
	}
	if after, ok := sqldump.Words(tokens, "SET"); ok {
		return x.set(after)
	}
	return nil
}

// set processes SET NAME = VALUE, given the tokens after SET.
func (x *index) set(tokens []sqldump.Token) error {
	if len(tokens) < 3 {
		return nil
	}
	value := strings.Trim(tokens[2].Text, "'")
	switch {
	case tokens[0].Is("search_path"):
		x.Schema = value
	case tokens[0].Is("standard_conforming_strings") && !strings.EqualFold(value, "on"):
		return errors.New("standard_conforming_strings is off, so its strings are ambiguous; dump with a newer pg_dump")
	case tokens[0].Is("client_encoding") && !slices.Contains([]string{"UTF8", "UTF-8", "SQL_ASCII"},
		strings.ToUpper(value)):
		return fmt.Errorf("the dump is in %s; dump again with pg_dump --encoding UTF8", value)
	}
	return nil
}

// name returns a table's full name, as for --source-table, or "" if there is none.
func (x *index) name(tokens []sqldump.Token) (name string, rest []sqldump.Token) {
	parts, rest := sqldump.Name(tokens)
	return x.Named(parts), rest
}

// insert counts rows in a dump made with --inserts. It returns false for other statements.
func (x *index) insert(tokens []sqldump.Token) bool {
	after, ok := sqldump.Words(tokens, "INSERT", "INTO")
	if !ok {
		return false
	}
	name, _ := x.name(after)
	t := x.Dump.Add(name)
	t.Rows++ // or more
	t.Refused = "its rows are INSERT statements; dump again with pg_dump, without --inserts"
	return true
}

// copy processes COPY NAME (COLUMNS) FROM stdin; and the rows after it.
func (x *index) copy(tokens []sqldump.Token, rest []byte) error {
	name, after := x.name(tokens)
	var columns []string
	if items, more := sqldump.Items(after); len(after) > 0 && after[0].Is("(") {
		for _, i := range items {
			if len(i) == 1 {
				columns = append(columns, i[0].Text)
			} else if len(i) > 1 {
				name = ""
			}
		}
		after = more
	}
	after, ok := sqldump.Words(after, "FROM", "stdin", ";")
	switch {
	case !ok || len(after) > 0 || name == "":
		return fmt.Errorf("at byte %d: a COPY that pg_dump does not write; want COPY table (columns) FROM stdin;", x.From)
	case string(rest) == "\r\n":
		return fmt.Errorf("at byte %d: lines end with CR LF, but pg_dump writes LF; copy the dump "+
			"again without changing it", x.From)
	case string(rest) != "\n" && len(rest) > 0:
		return fmt.Errorf("at byte %d: unexpected %.40q after a COPY", x.From, rest)
	}
	t := x.Dump.Add(name)
	if t.From > 0 && t.Refused == "" {
		t.Refused = "its rows are in several places of the dump, which may be several dumps; split it"
	}
	t.From, t.Lines = x.Offset, x.Count
	t.Arrange(columns)
	if len(columns) == 0 {
		t.Refused = "it has no columns"
	}
	return x.rows(t)
}

// rows counts the rows of a COPY statement and finds their end.
func (x *index) rows(t *sqldump.Table) error {
	for {
		at := x.Offset
		line, err := x.In.ReadSlice('\n')
		x.Offset += int64(len(line))
		if err == nil && len(line) == 3 && line[0] == '\\' && line[1] == '.' {
			t.To = at
			x.Count++
			return nil
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = x.In.ReadSlice('\n')
			x.Offset += int64(len(line))
		}
		if err != nil {
			t.To = at
			if errors.Is(err, io.EOF) {
				x.Cut = "the rows of " + t.Name
			}
			return err
		}
		if n := len(line) - 1; (n-len(bytes.TrimRight(line[:n], `\`)))%2 != 0 {
			return fmt.Errorf("at byte %d: a backslash at the end of a row, which pg_dump does not write", x.Offset)
		}
		t.Rows++
		x.Count++
	}
}
