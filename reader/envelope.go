package reader

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
)

// Patterns that recognise SQL of programs other than mysqldump: a statement, a beginning, the name of the program.
var (
	sqlStatement = regexp.MustCompile("(?im)^(insert into|create table( if not exists)?) [`\"]?\\w")
	sqlComment   = regexp.MustCompile(`(?i)^\s*(--|/\*|# |insert into |create table |set |drop table )`)
	sqlProgram   = regexp.MustCompile("phpMyAdmin|HeidiSQL|Sequel Ace|Sequel Pro|Adminer|Navicat|TablePlus|DBeaver")
)

// refuseSQL refuses SQL that no format of dumps has recognised: as CSV, it would load as garbage.
func (s *File) refuseSQL(head []byte) error {
	begin := string(head[:min(len(head), 4<<10)])
	if !sqlComment.MatchString(begin) || !sqlStatement.Match(head) {
		return nil
	}
	of, way := "", ""
	if name := sqlProgram.FindString(begin); name != "" {
		of = " of " + name
	}
	if strings.HasPrefix(begin, "/*!40") {
		of, way = " of mydumper", "; its columns are in the file NAME-schema.sql, so first put that before the rows: cat "+
			"NAME-schema.sql NAME.*.sql >NAME.sql"
	}
	return fmt.Errorf("read %s: the file holds SQL statements%s, which are not CSV: give --format mysqldump, or have the "+
		"program write CSV%s", s.Name, of, way)
}

// changes lists sets of members that identify change records.
var changes = []struct {
	members []string
	what    string
}{
	{[]string{"Keys", "NewImage"}, "an incremental export of DynamoDB"},
	{[]string{"Keys", "OldImage"}, "an incremental export of DynamoDB"},
	{[]string{"after", "before", "op"}, "Debezium changes"},
	{[]string{"after", "op", "source"}, "Debezium changes"},
	{[]string{"before", "op", "source"}, "Debezium changes"},
	{[]string{"data", "isDdl", "table", "type"}, "Canal changes"},
	{[]string{"data", "database", "table", "ts", "type", "xid"}, "Maxwell changes"},
}

// refuseChanges refuses a text whose first record is a change record, not a row.
func (s *File) refuseChanges(first map[string]json.RawMessage) error {
	var payload map[string]json.RawMessage
	if _, schema := first["schema"]; schema && json.Unmarshal(first["payload"], &payload) == nil {
		first = payload
	}
	for _, c := range changes {
		if !slices.ContainsFunc(c.members, func(name string) bool {
			// audit logs may have a member op with other values
			return first[name] == nil || name == "op" && !slices.Contains([]string{`"c"`, `"r"`, `"u"`, `"d"`, `"t"`},
				string(first[name]))
		}) {
			return fmt.Errorf("read %s: its records are %s: --mode changes applies them; --format jsonl loads each as a record",
				s.Name, c.what)
		}
	}
	return nil
}

// noteEnvelope adds a note if a member of the only record may hold the records, as in API responses or GeoJSON.
func (s *File) noteEnvelope(only map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(only)) {
		var rows []map[string]json.RawMessage
		if json.Unmarshal(only[name], &rows) != nil || len(rows) == 0 {
			continue
		}
		as := ""
		if name == "Items" && !slices.ContainsFunc(slices.Collect(maps.Values(rows[0])),
			func(v json.RawMessage) bool { return v[0] != '{' }) {
			as = " --format dynamodb"
		}
		if table.PlainName(name) { // it needs no quotes in jq
			s.Hint = fmt.Sprintf("%s is one record, whose member %s is an array of objects; if those are the rows: jq -c "+
				"'.%s[]' %s | tsimport load -%s",
				s.Name, name, name, s.shellName(), as)
			s.Notes = append(s.Notes, s.Hint)
		}
	}
}
