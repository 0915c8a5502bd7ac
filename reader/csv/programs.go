package csv

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	mysql         = "mysql"
	mysqlBatch    = "mysql-batch"
	mysqlTab      = "mysql-tab"
	postgres      = "postgres"
	postgresCSV   = "postgres-csv"
	clickHouse    = "clickhouse"
	clickHouseCSV = "clickhouse-csv"
	hive          = "hive"
	hiveEscaped   = "hive-escaped"
	hivePlain     = "hive-plain"
	excel         = "excel"
	sqlite        = "sqlite"
	sqliteQuote   = "sqlite-quote"
)

// programs holds the dialects of programs' dumps, most used first.
var programs = []Dialect{
	text(mysql, EscapesMySQL, Dialect{Doubt: "NULL"}),
	text(postgres, EscapesPostgres, Dialect{EndMark: `\.`}),
	text(clickHouse, EscapesClickHouse, Dialect{Types: FindTypes}),
	text(hive, EscapesUnknown, Dialect{Delimiter: "\x01"}),
	{Name: excel, Quote: '"', EOL: '\n'},
	{Name: sqlite, Delimiter: ",", Quote: '"', EOL: '\n', Blank: true},
	{Name: sqliteQuote, Delimiter: ",", Quote: '\'', EOL: '\n', Null: "NULL", Typed: true},
	{Name: postgresCSV, Delimiter: ",", Quote: '"', EOL: '\n', Blank: true, EndMark: `\.`},
	{Name: clickHouseCSV, Delimiter: ",", Quote: '"', EOL: '\n', Blank: true, Null: `\N`, Types: FindTypes},
	text(mysqlBatch, EscapesMySQL, Dialect{Null: "NULL", Doubt: `\N`}),
	text(mysqlTab, EscapesMySQL, Dialect{}),
	text("clickhouse-names", EscapesClickHouse, Dialect{}),
	text("clickhouse-types", EscapesClickHouse, Dialect{Types: WithTypes}),
	{Name: "clickhouse-csv-names", Delimiter: ",", Quote: '"', EOL: '\n', Blank: true, Null: `\N`},
	{Name: "clickhouse-csv-types", Delimiter: ",", Quote: '"', EOL: '\n', Blank: true, Null: `\N`, Types: WithTypes},
	text(hiveEscaped, EscapesHive, Dialect{Delimiter: "\x01"}),
	{Name: hivePlain, Delimiter: "\x01", Null: `\N`, EOL: '\n', Blank: true},
}

// text adds to d the properties of dialects with backslash escapes and without quotes.
func text(name string, e Escapes, d Dialect) Dialect {
	d.Name, d.Escapes, d.Escape, d.EOL, d.Blank = name, e, '\\', '\n', true
	d.Delimiter, d.Null = cmp.Or(d.Delimiter, "\t"), cmp.Or(d.Null, `\N`)
	return d
}

// Programs holds the names that Named knows, most used first.
var Programs = func() (names []string) {
	for _, d := range programs {
		names = append(names, d.Name)
	}
	return names
}()

// Named returns the dialect of a program's dumps, to complete with Settle, and whether unquoted empty fields mean "".
func Named(name string) (d Dialect, emptyIsText, ok bool) {
	i := slices.Index(Programs, name)
	if i < 0 {
		return d, false, false
	}
	return programs[i], programs[i].Quote == 0, true
}

// SetEscape replaces the program's escape character; 0 means none. For Hive, any other implies ESCAPED BY.
func (d *Dialect) SetEscape(escape byte) {
	d.Escape = escape
	switch {
	case escape == 0:
		d.Escapes = EscapesText
		if d.Name == hive || d.Name == hiveEscaped {
			d.Name = hivePlain
		}
	case d.Name == hive || d.Name == hivePlain:
		d.Name, d.Escapes = hiveEscaped, EscapesHive
	}
}

// Settle completes a dialect from a text's head. It returns the size of the preamble, if any, and a note for the user.
func (d *Dialect) Settle(head []byte, header bool) (preamble int, note string, err error) {
	switch d.Name {
	case mysql:
		note = d.settleMySQL(head, header)
	case hive:
		note = d.settleHive(head)
	case excel:
		return d.settleExcel(head, header)
	}
	if strings.HasPrefix(d.Name, mysql) && d.RecordEnd == "" {
		err = d.settleCR(head, header)
	}
	return 0, note, err
}

// settleMySQL tells output of mysql --batch, which has \t, \n, NULL and a header, from files written by the server.
func (d *Dialect) settleMySQL(head []byte, header bool) (note string) {
	server, batch := false, false
	special := d.Delimiter[0]
	for i := 0; i+1 < len(head); i++ {
		if head[i] != d.Escape || d.Escape == 0 {
			continue
		}
		switch c := head[i+1]; {
		case c == special || c == '\n':
			server = true
		case c == 'N' && (i == 0 || head[i-1] == special || head[i-1] == '\n') && i+2 < len(head) &&
			(head[i+2] == special || head[i+2] == '\n'):
			server = true
		case c == 'n' || c == 't' && special == '\t':
			batch = true
		}
		i++
	}
	switch {
	case server && !batch:
		*d = d.as(mysqlTab, `\N`, "")
		return `as SELECT INTO OUTFILE and mysqldump --tab: \N means null, NULL is text; else give --dialect mysql-batch`
	case batch && !server, header && !batch && !server:
		*d = d.as(mysqlBatch, "NULL", `\N`)
		return "as mysql --batch writes it: NULL means null; else give --dialect mysql-tab"
	}
	return ""
}

func (d *Dialect) as(name, null, doubt string) Dialect {
	made := *d
	made.Name, made.Null, made.Doubt = name, null, doubt
	return made
}

// settleCR detects whether a CR before a line end is data. MySQL does not escape CRs, so it belongs to the last column,
// unless the file was written on Windows or a tool changed its line ends.
func (d *Dialect) settleCR(head []byte, header bool) error {
	lines, crs := bytes.Count(head, []byte("\n")), bytes.Count(head, []byte("\r\n"))
	switch {
	case crs == 0 || crs < lines:
		d.RecordEnd = "\n"
		return nil
	case header: // column names do not end with a CR
		d.RecordEnd = "\r\n"
		return nil
	}
	return errors.New(`every line ends with CR LF, and MySQL does not escape CRs: give --record-end '\n' if the CR ` +
		`belongs to the last column, '\r\n' if it belongs to the line end`)
}

// settleHive detects whether the table has ESCAPED BY, by backslashes that only one kind of table has.
func (d *Dialect) settleHive(head []byte) (note string) {
	if d.Escapes != EscapesUnknown {
		return ""
	}
	escaped, text := false, false
	for i := 0; i+1 < len(head); i++ {
		if head[i] != d.Escape {
			continue
		}
		first := i == 0 || head[i-1] == '\n' || head[i-1] == d.Delimiter[0]
		switch c := head[i+1]; {
		case c == 'N' && first && (i+2 == len(head) || strings.IndexByte("\r\n"+d.Delimiter, head[i+2]) >= 0):
		case c == 'n' || c == 'r':
		case c == d.Escape || c == d.Delimiter[0] || c >= 1 && c <= 8:
			escaped = true
		default:
			text = true
		}
		i++
	}
	switch {
	case text:
		d.Name, d.Escape, d.Escapes = hivePlain, 0, EscapesText
		return "as a table without ESCAPED BY: a backslash is text; else give --dialect hive-escaped"
	case escaped:
		d.Name, d.Escapes = hiveEscaped, EscapesHive
		return `as a table with ESCAPED BY '\'; else give --dialect hive-plain`
	}
	return ""
}

// settleExcel detects the delimiter, unless a first line sep=; states it: Excel uses the machine's list separator.
func (d *Dialect) settleExcel(head []byte, header bool) (preamble int, note string, err error) {
	delimiter, n, ok := Separator(head)
	if ok {
		d.Delimiter = cmp.Or(d.Delimiter, delimiter)
		return n, "", nil
	}
	if d.Delimiter != "" {
		return 0, "", nil
	}
	var best []reading
	if n := bytes.LastIndexByte(head, '\n'); n >= 0 {
		head = head[:n+1]
	}
	for _, delimiter := range []string{",", ";", "\t"} {
		try := *d
		try.Delimiter = delimiter
		if r := readWith(try, head); r.good(header) {
			best = append(best, r)
		}
	}
	switch best = choose(best); len(best) {
	case 0:
		d.Delimiter = ","
	case 1:
		d.Delimiter = best[0].d.Delimiter
	default:
		return 0, "", errors.New("the text can be read with several delimiters; say which with --delimiter")
	}
	return 0, fmt.Sprintf("with the delimiter %q", d.Delimiter), nil
}

// Separator parses Excel's first line, such as sep=;, which states the delimiter. n is the length of the line.
func Separator(head []byte) (delimiter string, n int, ok bool) {
	end := bytes.IndexByte(head, '\n')
	line := strings.TrimRight(string(head[:max(end, 0)]), "\r")
	line = strings.TrimSuffix(strings.TrimPrefix(line, `"`), `"`)
	if len(line) != 5 || !strings.EqualFold(line[:4], "sep=") {
		return "", 0, false
	}
	return line[4:], end + 1, true
}
