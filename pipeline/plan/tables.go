package plan

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// DefaultMaxTables is the default limit of a load's tables. An instance has the same limit until the service raises it.
const DefaultMaxTables = 64

// Tables decides which table each row goes to if --table has expressions in braces. It is safe for concurrent use.
type Tables struct {
	Text string // name as the user gave it

	parts  []namePart
	period *lifecycle.Template // nil unless the names consist of text and one period
	policy *lifecycle.Policy   // nil if there is none
	now    time.Time           // time from which the policy counts ages
}

// namePart is a part of a table's name: text, or the result of an expression.
type namePart struct {
	text    string
	expr    string // as keyexpr parses it
	program *keyexpr.Program
}

// IsTemplate reports whether a table's name contains expressions.
func IsTemplate(name string) bool { return strings.ContainsAny(name, "{}") }

// FileName returns the name of a table, or a template of names, in a form that can be part of a file name.
func FileName(name string) string {
	if !IsTemplate(name) {
		return name
	}
	return strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune("{})", r) {
			return -1
		}
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name), "-")
}

// layouts are the formats of periods in table names. Names sort as their periods do.
var layouts = map[string]string{"year": "2006", "month": "200601", "day": "20060102"}

// parseTables parses the name of tables with expressions in braces. Periods without a zone use the policy's, if any.
func parseTables(text string, policy *lifecycle.Policy) (*Tables, error) {
	t := &Tables{Text: text}
	for rest := text; rest != ""; {
		before, inner, after, err := cutBraces(rest)
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", text, err)
		}
		if before != "" {
			t.parts = append(t.parts, namePart{text: before})
		}
		if len(before) < len(rest) {
			expr, err := nameExpression(inner, policy)
			if err != nil {
				return nil, fmt.Errorf("table %q: %w", text, err)
			}
			t.parts = append(t.parts, namePart{expr: expr})
		}
		rest = after
	}
	for _, part := range t.parts {
		if part.expr == "" && table.CheckTableName("t"+part.text) != nil {
			return nil, fmt.Errorf("table %q: want letters, digits and underscores around the braces, not %q", text, part.text)
		}
	}
	return t, nil
}

// cutBraces cuts text around its first expression in braces. Braces in strings do not count; others must balance.
func cutBraces(text string) (before, inner, after string, err error) {
	before, rest, open := strings.Cut(text, "{")
	if strings.Contains(before, "}") {
		return "", "", "", errors.New("unmatched }; want an expression in braces, as in consume_{month(PaidAt)}")
	}
	if !open {
		return before, "", "", nil
	}
	end := indexOutside(rest, '}')
	if end < 0 {
		return "", "", "", errors.New("unmatched {; want an expression in braces, as in consume_{month(PaidAt)}")
	}
	return before, strings.TrimSpace(rest[:end]), rest[end+1:], nil
}

// indexOutside returns the first place of a character outside quotes and brackets, or -1.
func indexOutside(text string, want rune) int {
	depth, quote, escaped := 0, rune(0), false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if escaped = r == '\\' && quote != '`'; r == quote {
				quote = 0
			}
		case depth == 0 && r == want:
			return i
		case r == '"' || r == '\'' || r == '`':
			quote = r
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		}
	}
	return -1
}

// nameExpression returns an expression whose value is text. Periods become numbers that sort: month(t) is 202403.
func nameExpression(inner string, policy *lifecycle.Policy) (string, error) {
	if inner == "" {
		return "", errors.New("the braces are empty; want an expression, as in consume_{month(PaidAt)}")
	}
	name, rest, called := strings.Cut(inner, "(")
	layout := layouts[strings.TrimSpace(name)]
	if layout == "" {
		return "text(" + inner + ")", nil
	}
	if !called {
		return "", fmt.Errorf("{%s} names no column; want {%s(COLUMN)}", inner, strings.TrimSpace(name))
	}
	if indexOutside(rest, ')') != len(rest)-1 {
		return "text(" + inner + ")", nil
	}
	moment, options := rest[:len(rest)-1], ""
	if comma := indexOutside(moment, ','); comma >= 0 {
		moment, options = moment[:comma], moment[comma:]
	}
	if policy != nil && lifecycle.ZoneOf(inner) == "" {
		options += fmt.Sprintf(", %q", policy.Zone)
	}
	return fmt.Sprintf("format_time(%s, %q%s)", moment, layout, options), nil
}

func (p *planner) settleTables() error {
	target := &p.request.Target
	if !IsTemplate(target.Table) {
		if target.Policy != nil {
			return usagef("--age-policy: table %s has no period; want one, as in consume_{month(PaidAt)}", target.Table)
		}
		return nil
	}
	t, err := parseTables(target.Table, target.Policy)
	if err != nil {
		return usagef("--table: %v", err)
	}
	if t.period, err = lifecycle.ParseTemplate(target.Table); err != nil {
		t.period = nil
	}
	if target.Policy != nil {
		if t.period == nil {
			return usagef("--age-policy: %v", err)
		}
		if err := target.Policy.Fits(t.period); err != nil {
			return usagef("--age-policy: %v", err)
		}
		last := target.Policy.Classes[len(target.Policy.Classes)-1]
		switch {
		case last.Drop:
			return usagef("--age-policy: the policy drops old tables, but a load omits no rows by age; give it a copy of the " +
				"policy with {} as the last class")
		case last.Remote():
			return usagef("--age-policy: a load archives old rows in a folder, but the policy's archive is in an object " +
				"store; give the load a copy of the policy with a folder, or without the class with archive")
		}
		if last.Archives() && p.request.Mode == table.Delete {
			return usagef("--age-policy: the policy archives old rows, but --mode delete writes none; use one without archive")
		}
		t.policy, t.now = target.Policy, target.PolicyNow
		if t.now.IsZero() {
			t.now = time.Now().UTC() // the service was not asked
		}
	}
	p.plan.Tables = t
	return nil
}

func (p *planner) compileTables() error {
	t := p.plan.Tables
	if t == nil {
		return nil
	}
	for i := range t.parts {
		part := &t.parts[i]
		if part.expr == "" {
			continue
		}
		program, err := keyexpr.CompileColumn(keyexpr.Column{Name: "--table", Type: table.String, Expr: part.expr},
			p.plan.env)
		if err != nil {
			return usagef("--table %s: %v", t.Text, err)
		}
		if program.Auto {
			return usagef("--table %s: splice(auto, …) would make table names depend on a sample; name the separator", t.Text)
		}
		part.program = program
	}
	return nil
}

// Namer makes the table names of rows. It is not safe for concurrent use.
type Namer struct {
	tables     *Tables
	evaluators []*keyexpr.Evaluator
	name       []byte
	last       []byte // the last valid name
	archived   bool   // rows of the table with that name are archived
}

func (t *Tables) NewNamer() *Namer {
	n := &Namer{tables: t, evaluators: make([]*keyexpr.Evaluator, len(t.parts))}
	for i, part := range t.parts {
		if part.program != nil {
			n.evaluators[i] = part.program.NewEvaluator()
		}
	}
	return n
}

// Of returns a record's table name, valid until the next call, and whether its rows are archived; or why it has none.
func (n *Namer) Of(fields []table.Value) (name []byte, archived bool, why *table.Reason) {
	n.name = n.name[:0]
	for i, part := range n.tables.parts {
		if part.program == nil {
			n.name = append(n.name, part.text...)
			continue
		}
		v, why := n.evaluators[i].Eval(fields)
		if why != nil {
			return nil, false, why
		}
		if v.Type != table.String {
			return nil, false, &table.Reason{Column: "--table", Code: table.CodeNullKey,
				Message: fmt.Sprintf("%s gives no value, so the row has no table", part.program.Source())}
		}
		n.name = append(n.name, v.Bytes...)
	}
	if n.last == nil || !bytes.Equal(n.name, n.last) {
		if err := table.CheckTableName(string(n.name)); err != nil {
			return nil, false, &table.Reason{Column: "--table", Code: table.CodeType, Message: err.Error(),
				Value: table.Show(n.name)}
		}
		n.last = append(n.last[:0], n.name...)
		n.archived = n.tables.Archive(string(n.name)) != ""
	}
	return n.last, n.archived, nil
}

// warnOfAges warns if no sampled record is young enough for a table, because this is hardly intended.
func (p *planner) warnOfAges() error {
	t := p.plan.Tables
	if !t.Archives() {
		return nil
	}
	namer, records := t.NewNamer(), 0
	young := false
	first, last := "", ""
	if err := p.plan.Sample(func(row []table.Value) bool {
		name, archived, why := namer.Of(row)
		if why != nil {
			return true // it will be rejected
		}
		if young = !archived; young {
			return false
		}
		if records++; first == "" || string(name) < first {
			first = string(name)
		}
		last = max(last, string(name))
		return true
	}); err != nil {
		return err
	}
	if young || records == 0 {
		return nil
	}
	of := first
	if last != first {
		of += " to " + last
	}
	p.warnf("all %d sampled records go to archive %s, none to a table: they are of %s, too old for other classes on %s",
		records, t.Archive(first), of, t.now.Format(time.DateOnly))
	return nil
}

// class returns the policy's class for a table, or nil if there is none.
func (t *Tables) class(name string) *lifecycle.Class {
	if t.policy == nil {
		return nil
	}
	period, ok := t.period.Period(name)
	if !ok {
		return nil
	}
	return t.policy.ClassOf(period, t.now)
}

// Class returns the number of the policy's class for a table, from 1; 0 means none.
func (t *Tables) Class(name string) int {
	if c := t.class(name); c != nil {
		return c.Number
	}
	return 0
}

// Archive returns the folder to which a table's rows are archived, or "" if they go to the table.
func (t *Tables) Archive(name string) string {
	if c := t.class(name); c != nil {
		return c.Archive
	}
	return ""
}

// Archives reports whether rows of any table may go to the archive.
func (t *Tables) Archives() bool {
	return t != nil && t.policy != nil && t.policy.Classes[len(t.policy.Classes)-1].Archives()
}

// definition returns how to create a table: as the user requests, except for what the policy sets for its age.
func (t *Tables) definition(name string, d table.Definition) table.Definition {
	c := t.class(name)
	if c == nil {
		return d
	}
	for _, f := range []struct {
		from *int
		to   *int
	}{{c.Read, &d.ReservedRead}, {c.Write, &d.ReservedWrite}, {c.TTL, &d.TimeToLive}, {c.MaxVersions, &d.MaxVersions}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return d
}

// maxVersions returns the highest number of versions of a cell that tables created by the load keep.
func (t *Tables) maxVersions(versions int) int {
	if t.policy != nil {
		for _, c := range t.policy.Classes {
			if c.MaxVersions != nil {
				versions = max(versions, *c.MaxVersions)
			}
		}
	}
	return versions
}

// policyText describes everything in a policy that affects the outcome of a load.
func policyText(p *lifecycle.Policy) string {
	if p == nil {
		return "none"
	}
	text := fmt.Sprintf("by %v in %v", p.Unit, p.Zone)
	number := func(n *int) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, c := range p.Classes {
		text += fmt.Sprintf("; %s: read %s, write %s, ttl %s, versions %s, archive %q", c.Ages(), number(c.Read),
			number(c.Write), number(c.TTL), number(c.MaxVersions), c.Archive)
	}
	return text
}

// matches reports whether a table may have the name. Without a row, only the text around the expressions is known.
func (t *Tables) matches(name string) bool {
	if t.period != nil {
		_, ok := t.period.Period(name)
		return ok
	}
	pattern := "^"
	for i, part := range t.parts {
		switch {
		case part.expr == "":
			pattern += regexp.QuoteMeta(part.text)
		case i == len(t.parts)-2 && t.parts[i+1].expr == "":
			pattern += ".+"
		default:
			pattern += ".*"
		}
	}
	return regexp.MustCompile(pattern + "$").MatchString(name)
}

// describeTables takes the key of an existing table, if there is one, as all tables have the same key.
func (p *planner) describeTables() error {
	target := &p.request.Target
	if !target.Absent {
		names, err := p.admin.List()
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			if !p.plan.Tables.matches(name) {
				continue
			}
			if p.plan.table, err = p.admin.Describe(name); !errors.Is(err, client.ErrNoTable) {
				return err
			}
		}
	}
	if len(target.Key) == 0 {
		return usagef("no table of %s exists in %s; to create them, give --create and their primary key with --pk "+
			"NAME[:TYPE], once for each column in order", target.Table, target.Name)
	}
	return nil
}

// OpenTable ensures that one of the tables exists, with the common key. It creates a missing table if that is allowed.
func (p *Plan) OpenTable(admin *client.Admin, name string) (t *client.Table, made bool, err error) {
	target := &p.Request.Target
	t, err = admin.Describe(name)
	if errors.Is(err, client.ErrNoTable) {
		if !target.Create {
			return nil, false, fmt.Errorf("table %s does not exist in %s; to create it, give --create", name, target.Name)
		}
		err = admin.Create(name, p.Schema.Key, p.Tables.definition(name, target.Define))
		if made = err == nil; made || errors.Is(err, client.ErrTableExists) {
			t, err = admin.Opened(name)
		}
	}
	if err != nil {
		return nil, made, err
	}
	if !slices.Equal(t.Key, p.Schema.Key) {
		return nil, made, fmt.Errorf("table %s has the primary key %s, but the load's is %s; all tables of %s need the same",
			name, keyText(t.Key), keyText(p.Schema.Key), p.Tables.Text)
	}
	if t.MaxVersions > 1 && p.Request.Mode == table.Update && !p.Restamp {
		return nil, made, fmt.Errorf("table %s keeps %d versions of a cell, but others of %s keep one; load it separately",
			name, t.MaxVersions, p.Tables.Text)
	}
	return t, made, nil
}
