package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// This file parses events of Debezium as documented for its connectors to PostgreSQL, MySQL and MariaDB (3.x). It
// returns the values that a load of the table from the database would return (docs/sql.md), and refuses inexact ones.

// debeziumEvent is the payload of an event.
type debeziumEvent struct {
	op            string
	before, after int // positions of these objects; -1 if null
	connector     string
	nulls         bool // whether nulls are written as null even if a column has a default
	table         []string
	ddl           string
}

func (p *Parser) debeziumChange(start int) bool {
	s := &p.scan
	payload, schema, schemaEnd := start, -1, -1
	envelope := false
	p.members(start, func(name []byte, from, to int) bool {
		switch string(name) {
		case "payload":
			payload, envelope = from, true
		case "schema":
			schema, schemaEnd = from, to
		}
		return true
	})
	if !envelope {
		schema = -1
	}
	if s.data[payload] == 'n' {
		return p.pass(false) // a tombstone
	}
	if s.data[payload] != '{' {
		return p.refuse("", CodeChange, "payload is not an object", payload)
	}
	e := &p.changed.event
	if heartbeat := p.readEvent(payload); heartbeat {
		return p.pass(false)
	}
	if e.ddl != "" {
		return p.definition(payload)
	}
	if e.op == "m" { // a message that an application has written to the log
		return p.pass(false)
	}
	if e.op == "" || len(e.table) == 0 {
		return p.refuse("", CodeChange, "want op and source, as in Debezium events", payload)
	}
	if mine, ok := p.ofTable(e.table, payload); !mine {
		return ok
	}
	image := e.after
	switch e.op {
	case "c", "r", "u":
	case "d":
		p.record.Mode, image = table.Delete, e.before
	case "t":
		return p.refuse("", CodeDDL, fmt.Sprintf("table %s was truncated; delete its rows here, and continue with the "+
			"events after this one", strings.Join(e.table, ".")), payload)
	default:
		return p.refuse("", CodeChange, fmt.Sprintf("unknown op %q: want c, r, u, d or t", e.op), payload)
	}
	if image < 0 {
		return p.refuse("", CodeChange, fmt.Sprintf("a change %q has no row image; a PostgreSQL table needs a "+
			"primary key, or REPLICA IDENTITY FULL", e.op), payload)
	}
	columns, ok := p.columnsOf(schema, schemaEnd)
	if !ok || !p.sameKey(e) || !p.members(image, func(name []byte, from, to int) bool {
		return p.changedValue(columns, name, from, to)
	}) {
		return false
	}
	return p.changesAny()
}

// changesAny skips an update that does not change a loaded column.
func (p *Parser) changesAny() bool {
	if p.record.Mode == table.Update && !slices.ContainsFunc(p.record.Cells,
		func(c record.Cell) bool { _, key := p.index[string(c.Name)]; return !key }) {
		return p.pass(false)
	}
	return true
}

// sameKey refuses an update that changes the table's key, if that is not the database's: then it is a single event.
func (p *Parser) sameKey(e *debeziumEvent) bool {
	if e.op != "u" || e.before < 0 {
		return true
	}
	was := map[string]string{}
	p.members(e.before, func(name []byte, from, to int) bool {
		if _, key := p.index[string(name)]; key {
			was[string(name)] = string(p.scan.data[from:to])
		}
		return true
	})
	return p.members(e.after, func(name []byte, from, to int) bool {
		before, key := was[string(name)]
		return !key || before == string(p.scan.data[from:to]) ||
			p.refuse(string(name), CodeChange, "the update changes a column of the table's key, and would leave the old row "+
				"behind; make the key of the columns of the source's own key", from)
	})
}

// readEvent reads a payload. It reports whether that is a heartbeat, or the beginning or end of a transaction.
func (p *Parser) readEvent(payload int) (other bool) {
	e := &p.changed.event
	*e = debeziumEvent{before: -1, after: -1, table: e.table[:0]}
	object := func(at int) int {
		if p.scan.data[at] == '{' {
			return at
		}
		return -1
	}
	source, status, members := -1, "", 0
	heartbeat := false
	p.members(payload, func(name []byte, from, _ int) bool {
		switch string(name) {
		case "op":
			e.op = p.textAt(from)
		case "before":
			e.before = object(from)
		case "after":
			e.after = object(from)
		case "source":
			source = object(from)
		case "ddl":
			e.ddl = p.textAt(from)
		case "status":
			status = p.textAt(from)
		case "ts_ms":
			heartbeat = true
		}
		members++
		return true
	})
	if source >= 0 {
		var in [3]string
		at := &p.changed.at
		p.members(source, func(name []byte, from, _ int) bool {
			switch string(name) {
			case "connector":
				e.connector = p.textAt(from)
			case "snapshot":
				e.nulls = p.scan.data[from] == 'n' // absent members have the default false
			case "db":
				in[0] = p.textAt(from)
			case "schema":
				in[1] = p.textAt(from)
			case "table":
				in[2] = p.textAt(from)
			case "file":
				at.File = p.textAt(from)
			case "pos":
				at.Position = p.natural(from)
			case "lsn":
				at.LSN = p.natural(from)
			case "ts_ms":
				at.Millis = int64(p.natural(from))
			}
			return true
		})
		if in[2] != "" {
			for _, part := range in {
				if part != "" {
					e.table = append(e.table, part)
				}
			}
		}
	}
	return heartbeat && members == 1 || (status == "BEGIN" || status == "END") && e.op == "" && source < 0
}

var drops = regexp.MustCompile(`(?i)^\s*(truncate|drop)\b`)

// definition skips a statement about other tables. It refuses one that alters this table, because the load has not.
func (p *Parser) definition(payload int) bool {
	var of struct {
		Changes []struct {
			ID   string `json:"id"`
			Type string `json:"type"`
		} `json:"tableChanges"`
	}
	p.scan.pos = payload
	p.scan.past()
	if err := json.Unmarshal(p.scan.data[payload:p.scan.pos], &of); err != nil {
		return p.refuse("", CodeChange, "the event of a statement cannot be read", payload)
	}
	named := p.options.Changes.Table
	if whole := p.options.Changes.Whole; named == "" && whole != nil {
		named = whole.Is("")
	}
	if len(of.Changes) == 0 && drops.MatchString(p.changed.event.ddl) {
		return p.refuse("", CodeDDL, fmt.Sprintf("a statement that truncates or drops something, and the event does not say "+
			"which tables: %.100s; do the same here, and continue with the events after this one", p.changed.event.ddl), payload)
	}
	for _, c := range of.Changes {
		if name := strings.Split(strings.ReplaceAll(c.ID, `"`, ""), "."); c.Type != "CREATE" && IsTable(named, name) {
			return p.refuse("", CodeDDL, fmt.Sprintf("table %s was altered: %.100s; alter the load likewise, and continue "+
				"with the events after this one", strings.Join(name, "."), p.changed.event.ddl), payload)
		}
	}
	return p.pass(true)
}

// changedSchema holds the columns of the latest schema.
type changedSchema struct {
	text      []byte
	connector string
	columns   map[string]*changedColumn
}

// changeReader sets d to the value between two positions, or returns why it cannot.
type changeReader func(p *Parser, c *changedColumn, d *record.Datum, from, to int) (why string)

// changedColumn defines how a column's values are read.
type changedColumn struct {
	read   changeReader
	refuse string // why the values are refused; "" if they are accepted
	unit   int64  // for times: units per second
	digits int    // for times: digits of the second's fraction; -1 for all
	scale  int32
	length int
	// instead is the column's default in JSON, which the converter may have written in place of a null.
	instead []byte
}

// columnsOf returns the columns of the schema between two positions; nil if it has none.
func (p *Parser) columnsOf(from, to int) (map[string]*changedColumn, bool) {
	if from < 0 || p.scan.data[from] != '{' {
		return nil, true
	}
	text, c := p.scan.data[from:to], &p.changed.schema
	if c.columns != nil && c.connector == p.changed.event.connector && bytes.Equal(c.text, text) {
		return c.columns, true
	}
	var schema struct {
		Fields []struct {
			Field  string           `json:"field"`
			Fields []debeziumMember `json:"fields"`
		} `json:"fields"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, p.refuse("", CodeChange, "the schema of the event cannot be read", from)
	}
	c.text, c.connector, c.columns = append(c.text[:0], text...), p.changed.event.connector, map[string]*changedColumn{}
	for _, image := range schema.Fields {
		if image.Field == "after" || image.Field == "before" {
			for _, m := range image.Fields {
				c.columns[m.Field] = m.column(c.connector)
			}
		}
	}
	return c.columns, true
}

// debeziumMember is a column in a Kafka Connect schema.
type debeziumMember struct {
	Field      string            `json:"field"`
	Type       string            `json:"type"`
	Name       string            `json:"name"`
	Parameters map[string]string `json:"parameters"`
	Optional   bool              `json:"optional"`
	Default    json.RawMessage   `json:"default"`
}

// Column parameters that the connector's option column.propagate.source.type adds.
const (
	sourceType   = "__debezium.source.column.type"
	sourceLength = "__debezium.source.column.length"
)

func (m *debeziumMember) column(connector string) *changedColumn {
	c := &changedColumn{digits: -1}
	postgres := connector == "postgresql"
	of := strings.ToUpper(m.Parameters[sourceType])
	time := func(unit int64, read changeReader) {
		if c.unit, c.read = unit, read; !postgres {
			c.digits, _ = strconv.Atoi(m.Parameters[sourceLength]) // 0 if the column has no fraction
			if c.digits < 0 || c.digits > 9 {
				c.refuse = "the event says that the column has " + m.Parameters[sourceLength] + " digits of a second"
			}
		}
	}
	if of == "" { // a single bit looks like a boolean, a time without fraction like one with six digits
		c.refuse = "the event lacks the column's type; set column.propagate.source.type=.* in the connector"
		return c
	}
	refuse := func(why string) { c.refuse = why + "; leave the column out" }
	if m.Optional && len(m.Default) > 0 {
		c.instead = m.Default
	}
	exact := of == "BYTEA" || of == "BINARY" || of == "VARBINARY" || strings.HasSuffix(of, "BLOB")
	switch number := slices.Contains([]string{"NUMERIC", "DECIMAL", "MONEY"}, of); {
	case exact && m.Type != "bytes":
		refuse("the connector has converted bytes to text (binary.handling.mode)")
		return c
	case number && m.Type == "double":
		refuse("the connector has converted a decimal to a double (decimal.handling.mode)")
		return c
	case !postgres && m.Type == "boolean" && of != "BIT":
		refuse("the connector has converted a number to a boolean")
		return c
	case connector == "mysql" && of == "JSON":
		refuse("events do not have the server's text of JSON")
		return c
	}
	switch m.Name {
	case "io.debezium.time.Date", "org.apache.kafka.connect.data.Date":
		c.read = readDate
	case "io.debezium.time.Timestamp":
		time(1e3, readLocal)
	case "io.debezium.time.MicroTimestamp":
		time(1e6, readLocal)
	case "io.debezium.time.NanoTimestamp":
		time(1e9, readLocal)
	case "io.debezium.time.Time":
		time(1e3, readTimeOfDay)
	case "io.debezium.time.MicroTime":
		time(1e6, readTimeOfDay)
	case "io.debezium.time.NanoTime":
		time(1e9, readTimeOfDay)
	case "io.debezium.time.ZonedTimestamp":
		time(1, readZoned)
	case "io.debezium.time.Year":
		c.read = readWhole
	case "org.apache.kafka.connect.data.Decimal":
		scale, err := strconv.ParseInt(m.Parameters["scale"], 10, 32)
		if c.scale, c.read = int32(scale), readDecimal; err != nil {
			refuse("the schema does not state its scale")
		}
	case "io.debezium.data.VariableScaleDecimal":
		c.read = readScaled
	case "io.debezium.data.Bits":
		c.length, _ = strconv.Atoi(m.Parameters["length"])
		if c.read = readBits; postgres {
			c.read = readBitText
		}
		if of == "VARBIT" {
			refuse("events do not state the length of a varbit value")
		}
	case "", "io.debezium.data.Json", "io.debezium.data.Enum", "io.debezium.data.EnumSet", "io.debezium.data.Uuid",
		"io.debezium.data.Xml", "io.debezium.data.Ltree":
		switch m.Type {
		case "int8", "int16", "int32", "int64":
			if c.read = readWhole; strings.Contains(of, "UNSIGNED") {
				c.read = readUnwrapped
			}
		case "float":
			c.read = readFloat(32)
		case "double":
			c.read = readFloat(64)
		case "boolean":
			if c.read = readBoolean; postgres && of == "BIT" {
				c.length, c.read = 1, readBitText
			}
		case "string":
			if c.read = readText; of == "HSTORE" {
				refuse("events write hstore as JSON, which is not the server's text")
			}
		case "bytes":
			c.read = readBase64
		default:
			refuse(fmt.Sprintf("there is no exact text for values of type %s", m.Type))
		}
	default:
		refuse(fmt.Sprintf("values of %s do not have the server's exact text", m.Name))
	}
	return c
}

// unavailable is written in place of a value that the database did not log because it did not change.
const unavailable = "__debezium_unavailable_value"

var unavailableBytes = base64.StdEncoding.EncodeToString([]byte(unavailable))

// changedValue reads a column's value, which is between two positions.
func (p *Parser) changedValue(columns map[string]*changedColumn, name []byte, from, to int) bool {
	s := &p.scan
	value := s.data[from:to]
	refuse := func(code, message string) bool {
		p.refuse(string(name), code, message, from)
		p.bad.Value = table.Show(value)
		return false
	}
	if without := p.options.Changes.Without; without != nil && p.column(name) < 0 && without(string(name)) {
		return true
	}
	if slices.Contains([]string{unavailable, unavailableBytes}, strings.Trim(string(value[:min(len(value), 64)]), `"`)) {
		switch {
		case p.record.Mode == table.Delete: // a deletion needs only the key
		case p.changed.event.op == "u":
			p.record.Mode = table.Update
		default: // the row has a new key
			return refuse(CodeChange, "the value did not change when the row's key did, and the database has not logged it; "+
				"set REPLICA IDENTITY FULL and write the row again")
		}
		return true
	}
	d := record.Datum{}
	switch c := columns[string(name)]; {
	case value[0] == 'n':
	case columns == nil:
		if s.pos = from; value[0] == '{' || value[0] == '[' || !p.options.Changes.Typed(string(name)) {
			return refuse(CodeChange, "the event does not state the types of its columns; set "+
				"value.converter.schemas.enable=true in the connector (canal: mysqlType), or give the column's type")
		}
		p.scalar(&d)
	case c == nil:
		return refuse(CodeChange, "the schema of the event does not have the column")
	case c.refuse != "" && p.options.Changes.Form == CanalChanges && p.options.Changes.Typed(string(name)):
		s.pos = from
		p.scalar(&d)
	case c.refuse != "":
		return refuse(table.CodeType, c.refuse)
	case bytes.Equal(c.instead, value) && !p.changed.event.nulls:
		return refuse(CodeChange, "the value is the column's default, which may stand for a null; set "+
			"value.converter.replace.null.with.default=false in the connector, and begin without a snapshot")
	default:
		if why := c.read(p, c, &d, from, to); why != "" {
			return refuse(table.CodeType, why)
		}
	}
	if d.Kind == record.Unsigned && d.Int < 0 && !p.options.Changes.Typed(string(name)) {
		return refuse(table.CodeType,
			"the integer does not fit in 64 bits with a sign; give the column the type string, or leave it out")
	}
	p.addCell(name, d)
	return true
}

func (p *Parser) whole(from, to int) (int64, bool) {
	n, err := strconv.ParseInt(string(p.scan.data[from:to]), 10, 64)
	return n, err == nil
}

const (
	noWhole = "the value is not an integer, as the schema requires"
	noText  = "the value is not a string, as the schema requires"
	noBytes = "the value is not base64, as the schema requires"
)

func readWhole(p *Parser, _ *changedColumn, d *record.Datum, from, to int) string {
	n, ok := p.whole(from, to)
	if !ok {
		return noWhole
	}
	*d = record.Datum{Kind: record.Integer, Int: n}
	return ""
}

// readUnwrapped reads an unsigned number. Events contain the signed number with the same bits.
func readUnwrapped(p *Parser, c *changedColumn, d *record.Datum, from, to int) string {
	why := readWhole(p, c, d, from, to)
	d.Kind = record.Unsigned
	return why
}

func readFloat(bits int) changeReader {
	return func(p *Parser, _ *changedColumn, d *record.Datum, from, to int) string {
		text := strings.Trim(string(p.scan.data[from:to]), `"`) // NaN and infinities are in quotes
		f, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return "the value is not a number, as the schema requires"
		}
		*d = record.Datum{Kind: record.Double, Double: f}
		return ""
	}
}

func readBoolean(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	if p.scan.pos = from; p.scan.data[from] != 't' && p.scan.data[from] != 'f' {
		return "the value is not a boolean, as the schema requires"
	}
	p.scalar(d)
	return ""
}

func readText(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	if p.scan.pos = from; p.scan.data[from] != '"' {
		return noText
	}
	p.scalar(d)
	return ""
}

// bytesAt decodes the base64 string at a position.
func (p *Parser) bytesAt(at int) ([]byte, bool) {
	s := &p.scan
	if s.pos = at; s.data[at] != '"' {
		return nil, false
	}
	text, _ := s.text()
	return unbase64(s, text)
}

func readBase64(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	bytes, ok := p.bytesAt(from)
	if !ok {
		return noBytes
	}
	*d = record.Datum{Kind: record.Binary, Bytes: bytes}
	return ""
}

func readDecimal(p *Parser, c *changedColumn, d *record.Datum, from, _ int) string {
	unscaled, ok := p.bytesAt(from)
	if !ok {
		return noBytes
	}
	p.decimal(d, unscaled, c.scale)
	return ""
}

func readScaled(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	var value struct {
		Scale int32  `json:"scale"`
		Value []byte `json:"value"`
	}
	p.scan.pos = from
	p.scan.past()
	if err := json.Unmarshal(p.scan.data[from:p.scan.pos], &value); err != nil {
		return "the value is not a decimal with its scale, as the schema requires"
	}
	p.decimal(d, value.Value, value.Scale)
	return ""
}

// decimal sets d to a decimal's text with all its digits.
func (p *Parser) decimal(d *record.Datum, unscaled []byte, scale int32) {
	n := record.Datum{Kind: record.Decimal, Bytes: unscaled, Scale: scale}
	p.text(d, func(dst []byte) []byte { return n.AppendDecimal(dst) })
}

// text sets d to a string in the scanner's memory, appended by write.
func (p *Parser) text(d *record.Datum, write func(dst []byte) []byte) {
	s := &p.scan
	from := len(s.scratch)
	s.scratch = write(s.scratch)
	*d = record.Datum{Kind: record.String, Bytes: s.scratch[from:len(s.scratch):len(s.scratch)]}
}

// readBits reads MySQL's bits as a number. The lowest byte is first.
func readBits(p *Parser, _ *changedColumn, d *record.Datum, from, _ int) string {
	bits, ok := p.bytesAt(from)
	if !ok || len(bits) > 8 {
		return noBytes
	}
	n := uint64(0)
	for i, b := range bits {
		n |= uint64(b) << (8 * i)
	}
	*d = record.Datum{Kind: record.Unsigned, Int: int64(n)}
	return ""
}

// readBitText reads PostgreSQL's bits as a string of digits, as the server would write them.
func readBitText(p *Parser, c *changedColumn, d *record.Datum, from, _ int) string {
	bits, ok := p.bytesAt(from)
	switch p.scan.data[from] {
	case 't':
		bits, ok = []byte{1}, true
	case 'f':
		bits, ok = []byte{0}, true
	}
	if !ok || len(bits)*8 >= c.length+8 || c.length == 0 {
		return noBytes
	}
	p.text(d, func(dst []byte) []byte {
		for i := c.length - 1; i >= 0; i-- {
			one := byte('0')
			if i/8 < len(bits) { // zero bytes at the end are omitted
				one += bits[i/8] >> (i % 8) & 1
			}
			dst = append(dst, one)
		}
		return dst
	})
	return ""
}

const noTime = "the time is before 1582-10-15, after 9999, or infinite, and inexact in the event"

// told reports whether events state a time exactly: Debezium's library uses the Julian calendar before 1582.
func told(at time.Time) bool { return at.Unix() >= -12_219_292_800 && at.Year() <= 9999 }

func readDate(p *Parser, _ *changedColumn, d *record.Datum, from, to int) string {
	days, ok := p.whole(from, to)
	if !ok {
		return noWhole
	}
	if days < math.MinInt32 || days > math.MaxInt32 {
		return noTime
	}
	at := time.Unix(0, 0).UTC().AddDate(0, 0, int(days))
	if !told(at) {
		return noTime
	}
	p.text(d, func(dst []byte) []byte { return at.AppendFormat(dst, time.DateOnly) })
	return ""
}

func readLocal(p *Parser, c *changedColumn, d *record.Datum, from, to int) string {
	n, ok := p.whole(from, to)
	if !ok {
		return noWhole
	}
	seconds, part := n/c.unit, n%c.unit
	if part < 0 {
		seconds, part = seconds-1, part+c.unit
	}
	return p.moment(d, c, time.Unix(seconds, part*(1e9/c.unit)).UTC(), "")
}

func readZoned(p *Parser, c *changedColumn, d *record.Datum, from, _ int) string {
	at, err := time.Parse(time.RFC3339Nano, p.textAt(from))
	if err != nil {
		return noTime
	}
	return p.moment(d, c, at.UTC(), "Z")
}

func (p *Parser) moment(d *record.Datum, c *changedColumn, at time.Time, zone string) string {
	if !told(at) {
		return noTime
	}
	p.text(d, func(dst []byte) []byte {
		dst = at.AppendFormat(dst, "2006-01-02T15:04:05")
		return append(appendFraction(dst, int64(at.Nanosecond()), c.digits), zone...)
	})
	return ""
}

func readTimeOfDay(p *Parser, c *changedColumn, d *record.Datum, from, to int) string {
	n, ok := p.whole(from, to)
	if !ok {
		return noWhole
	}
	p.text(d, func(dst []byte) []byte {
		if n < 0 {
			dst, n = append(dst, '-'), -n
		}
		seconds := n / c.unit
		dst = fmt.Appendf(dst, "%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
		return appendFraction(dst, n%c.unit*(1e9/c.unit), c.digits)
	})
	return ""
}

// appendFraction appends the given number of digits of a fraction of a second, or only significant ones if negative.
func appendFraction(dst []byte, nanos int64, digits int) []byte {
	text := fmt.Appendf(nil, ".%09d", nanos)
	if digits < 0 {
		text = bytes.TrimRight(text, ".0")
	} else {
		text = text[:digits+min(digits, 1)]
	}
	return append(dst, text...)
}
