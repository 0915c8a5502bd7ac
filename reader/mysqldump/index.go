package mysqldump

import (
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
	firsts := []string{"-- MySQL dump", "-- MariaDB dump", "/*M!999999", "/*!999999", "mysqldump: [Warning]"}
	return slices.ContainsFunc(firsts, func(first string) bool { return bytes.HasPrefix(head, []byte(first)) })
}

var syntax = sqldump.Syntax{Quote: '`', Backslash: true, Hash: true}

// Index finds the tables in a dump. It fails if the text cannot be read. For an incomplete dump it sets Truncated.
func Index(r io.Reader) (*sqldump.Dump, error) {
	x := &index{Indexing: sqldump.NewIndexing(r), delimiter: ";"}
	for {
		err := x.next()
		if errors.Is(err, io.EOF) {
			return x.Finish(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

type index struct {
	sqldump.Indexing
	delimiter string
	binary    bool           // whether texts are as the server keeps them, in the character sets of their columns
	utc       bool           // whether times in columns of type timestamp are in UTC
	last      *sqldump.Table // table of the previous statement, if that had rows
}

// next processes the next line, or the next statement with rows.
func (x *index) next() error {
	if len(x.Text) == 0 && x.delimiter == ";" {
		word, err := x.In.Peek(len("REPLACE "))
		if len(word) == 0 && err != nil {
			return err
		}
		if begins(word, "INSERT ") || begins(word, "REPLACE ") {
			return x.insert()
		}
	}
	line, err := x.Line()
	if err != nil {
		return err
	}
	return x.statement(line)
}

func begins(text []byte, word string) bool {
	return len(text) >= len(word) && strings.EqualFold(string(text[:len(word)]), word)
}

// statement processes a line, and the statement that ends there, if any.
func (x *index) statement(line []byte) error {
	if len(x.Text) == 0 {
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0 || trimmed[0] == '#' || begins(trimmed, "/*M!999999") || begins(trimmed, "/*!999999"):
			return nil
		case begins(trimmed, "mysqldump: ") || begins(trimmed, "mariadb-dump: "):
			return fmt.Errorf("at byte %d: the dump contains a message of the dump program: %.80q; dump again without 2>&1",
				x.Offset-int64(len(line)), trimmed)
		case bytes.HasPrefix(trimmed, []byte("--")):
			x.comment(string(trimmed))
			return nil
		case begins(trimmed, "DELIMITER "):
			x.delimiter = strings.TrimSpace(string(trimmed[len("DELIMITER "):]))
			return nil
		}
		x.From = x.Offset - int64(len(line))
		x.Lexer = sqldump.Lexer{Syntax: syntax}
	}
	x.Text = append(x.Text, line...)
	if len(x.Text) > sqldump.MaxStatement {
		return fmt.Errorf("at byte %d: a statement without rows is longer than %d MiB", x.From, sqldump.MaxStatement>>20)
	}
	if x.delimiter != ";" { // inside triggers and routines
		if text := bytes.TrimSpace(x.Text); bytes.HasSuffix(text, []byte(x.delimiter)) {
			x.Text = x.Text[:0]
			x.Dump.Statements++
			x.last = nil
		}
		return nil
	}
	end := x.Lexer.End(x.Text)
	if end < 0 {
		return nil
	}
	if rest := bytes.TrimSpace(x.Text[end:]); len(rest) > 0 && !bytes.HasPrefix(rest, []byte("--")) && rest[0] != '#' {
		return fmt.Errorf("at byte %d: %.40q follows a statement on the same line, as in no dump", x.From+int64(end), rest)
	}
	statement := x.Text[:end]
	x.Text = x.Text[:0]
	return x.take(statement)
}

func (x *index) comment(line string) {
	switch {
	case strings.HasPrefix(line, "-- Dump completed"):
		x.Begun = false
	case strings.HasPrefix(line, "-- MySQL dump") || strings.HasPrefix(line, "-- MariaDB dump"):
		x.Begun = true
	}
}

// take processes a complete statement, which has no rows.
func (x *index) take(statement []byte) error {
	x.Dump.Statements++
	x.last = nil
	text := bytes.TrimSpace(statement)
	if inner, conditional := bytes.CutPrefix(text, []byte("/*!")); conditional {
		inner = bytes.TrimLeft(inner, "0123456789")
		if end := bytes.LastIndex(inner, []byte("*/")); end >= 0 {
			inner = inner[:end]
		}
		text = inner
	}
	const enough = 4 << 10 // number of bytes that suffice to recognise a long statement
	tokens := sqldump.Tokens(text[:min(len(text), enough)], syntax)
	if len(tokens) > 0 && (tokens[0].Is("SET") || tokens[0].Is("CREATE")) {
		tokens = sqldump.Tokens(text, syntax)
	}
	if after, ok := sqldump.Words(tokens, "SET"); ok {
		return x.set(after)
	}
	if after, ok := sqldump.Words(tokens, "USE"); ok {
		if parts, _ := sqldump.Name(after); len(parts) == 1 {
			x.Schema = parts[0]
		}
	}
	if after, ok := sqldump.Words(tokens, "CREATE", "TABLE"); ok && len(text) == len(bytes.TrimSpace(statement)) {
		// A conditional CREATE TABLE is a placeholder for a view.
		x.create(after)
	}
	return nil
}

// unicode lists character sets of dumps whose texts are UTF-8; with binary, only if the columns' character sets are.
var unicode = []string{"utf8", "utf8mb3", "utf8mb4", "binary"}

// set processes a SET statement, given the tokens after SET.
func (x *index) set(tokens []sqldump.Token) error {
	for i, t := range tokens {
		if t.Quoted && strings.Contains(strings.ToUpper(t.Text), "NO_BACKSLASH_ESCAPES") {
			return fmt.Errorf("at byte %d: SQL_MODE has NO_BACKSLASH_ESCAPES, so strings in the dump are ambiguous; dump "+
				"again with another SQL_MODE", x.From)
		}
		if i+1 < len(tokens) && t.Is("NAMES") && i == 0 {
			charset := strings.ToLower(strings.Trim(tokens[1].Text, "'"))
			if !slices.Contains(unicode, charset) {
				return fmt.Errorf("at byte %d: the dump is in %s; dump again with --default-character-set=utf8mb4", x.From, charset)
			}
			x.binary = charset == "binary"
		}
		if i+2 < len(tokens) && t.Is("TIME_ZONE") && tokens[i+1].Is("=") && (i == 0 || !tokens[i-1].Is("@")) {
			x.utc = tokens[i+2].Text == "'+00:00'"
		}
	}
	return nil
}

func (x *index) insert() error {
	from, lines := x.Offset, x.Count
	c := new(Cutter)
	var t *sqldump.Table
	for {
		data, err := x.In.Peek(max(1, x.In.Buffered()))
		if len(data) == 0 {
			if !errors.Is(err, io.EOF) {
				return err
			}
			x.Cut = fmt.Sprintf("the statement at byte %d", from)
			if t != nil {
				x.Cut = "the rows of " + t.Name
				t.To, t.Rows = x.Offset, t.Rows+c.rows
			}
			return io.EOF
		}
		n, _, err := c.statement(data)
		if err != nil {
			if e := new(SyntaxError); errors.As(err, &e) {
				return fmt.Errorf("at byte %d: %w", x.Offset+int64(e.Pos), err)
			}
			return err
		}
		if t == nil && c.state != between && c.state != inHead || t == nil && c.rows > 0 {
			if t, err = x.rowsOf(c.head, from, lines); err != nil {
				return err
			}
		}
		x.Count += int64(bytes.Count(data[:n], []byte("\n")))
		x.Offset += int64(n)
		if _, err := x.In.Discard(n); err != nil {
			return err
		}
		if c.state == between && c.rows > 0 {
			t.To, t.Rows = x.Offset, t.Rows+c.rows
			x.last = t
			return nil
		}
	}
}

// rowsOf returns the table of an INSERT, whose head it parses.
func (x *index) rowsOf(head []byte, from, lines int64) (*sqldump.Table, error) {
	tokens := sqldump.Tokens(head, syntax)
	after, _ := sqldump.Words(tokens[1:], "IGNORE")
	after, ok := sqldump.Words(after, "INTO")
	if !ok {
		return nil, fmt.Errorf("at byte %d: an INSERT that mysqldump does not write: %.60q", from, head)
	}
	name, after := sqldump.Name(after)
	var columns []string
	if len(after) > 0 && after[0].Is("(") {
		var items [][]sqldump.Token
		items, after = sqldump.Items(after)
		for _, i := range items {
			if len(i) != 1 {
				name = nil
				break
			}
			columns = append(columns, i[0].Text)
		}
	}
	if after, ok = sqldump.Words(after, "VALUES"); !ok || len(after) > 0 || name == nil {
		return nil, fmt.Errorf("at byte %d: an INSERT that mysqldump does not write: %.60q", from, head)
	}
	t := x.Dump.Add(x.Named(name))
	if columns == nil {
		for _, c := range t.Columns {
			columns = append(columns, c.Name)
		}
	}
	switch {
	case t.Rows == 0 && t.From == 0:
		t.From, t.Lines = from, lines
		t.Arrange(columns)
	case x.last != t:
		t.Refused = "its rows are in several places of the dump, which may be several dumps; split it"
	case !slices.EqualFunc(t.Columns, columns, func(c sqldump.Column, name string) bool { return c.Name == name }):
		t.Refused = "its INSERT statements name different columns"
	}
	return t, nil
}
