package datax

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/jobs/job"
)

// jdbc matches a reader's address. sqlName matches a column or table in a query.
var (
	jdbc    = regexp.MustCompile(`^jdbc:mysql://([A-Za-z0-9._-]+(?::\d+)?)/([A-Za-z0-9_$-]+)(?:\?(.*))?$`)
	sqlName = regexp.MustCompile("^(?:[A-Za-z_$][A-Za-z0-9_$]*|`[^`]+`)$")
)

// ofNoValue lists address parameters that are dropped: they do not affect values, or typeNotes covers their effect.
var ofNoValue = []string{"useUnicode", "characterEncoding", "autoReconnect", "autoReconnectForPools",
	"failOverReadOnly", "maxReconnects", "initialTimeout", "connectTimeout", "socketTimeout",
	"useCompression", "rewriteBatchedStatements", "useServerPrepStmts", "cachePrepStmts", "useCursorFetch",
	"defaultFetchSize", "allowPublicKeyRetrieval", "allowMultiQueries",
	"serverTimezone", "zeroDateTimeBehavior", "tinyInt1isBit", "yearIsDateType", "useLegacyDatetimeCode",
	"nullCatalogMeansCurrent"}

// bare removes the quotes from a name that matches sqlName.
func bare(name string) string { return strings.Trim(name, "`") }

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// sql converts mysqlreader into one load per table or query.
func (j *Job) sql(o, _ object, l job.Single, columns []column, keys int) {
	o.known("username", "password", "column", "connection", "where", "splitPk", "fetchSize")
	user := o.text("username", "")
	conditions := j.statements(o, "where")
	where := strings.TrimRight(strings.Join(conditions, ""), ";； \n")
	var connections []object
	if err := json.Unmarshal(o["connection"], &connections); err != nil || len(connections) == 0 {
		panic(refusef("connection: want a list of {jdbcUrl, table} or {jdbcUrl, querySql}"))
	}
	first := ""
	for _, c := range connections {
		c.knownIn("connection", "jdbcUrl", "table", "querySql")
		address := addressOf(c, user)
		first = cmp.Or(first, address)
		tables := j.statements(c, "table")
		queries := j.statements(c, "querySql")
		if (len(tables) > 0) == (len(queries) > 0) {
			panic(refusef("connection: want table or querySql, not both"))
		}
		for _, q := range queries {
			j.query(address, q, false, l, columns, keys)
		}
		for _, t := range tables {
			for _, name := range expandTable(t) {
				j.table(o["column"], address, name, where, l, columns, keys)
			}
		}
	}
	j.note("the password of " + user + " is not copied: set MYSQL_PWD or use the database's password file (docs/sql.md)")
	if len(connections) > 1 {
		j.note("all loads use MYSQL_PWD, as the connections of DataX share one password")
	}
	j.typeNotes(columns)
}

// typeNotes notes which types may differ, because the types of the database's columns are unknown.
func (j *Job) typeNotes(columns []column) {
	var texts []string
	for _, c := range columns {
		if c.kind == "string" {
			texts = append(texts, c.name)
		}
	}
	if len(texts) > 0 {
		j.note("written as text: " + strings.Join(texts, ", ") + ". Text and whole numbers are the same as with DataX. " +
			"Dates, times and floats are written as docs/sql.md says; DataX writes 2024-02-29 12:34:56 in its own zone, " +
			"without fractions, and reads zero dates as null. If one of these columns is of such a type, cast it to text in a " +
			"view of the database, and read that")
	}
	j.note("numbers and booleans that are not exactly of their type are rejected; DataX may round or convert them")
}

// addressOf converts a connection's address, without the password.
func addressOf(c object, user string) string {
	urls, ok := texts(c["jdbcUrl"])
	if !ok {
		panic(refusef("jdbcUrl: want an address"))
	}
	if len(urls) != 1 {
		panic(refusef("jdbcUrl: %d addresses, of which DataX uses the first that responds; keep one", len(urls)))
	}
	m := jdbc.FindStringSubmatch(urls[0])
	if m == nil {
		panic(refusef("jdbcUrl: not converted; want jdbc:mysql://HOST:PORT/DATABASE with one host"))
	}
	given, err := url.ParseQuery(m[3])
	if err != nil {
		panic(refusef("jdbcUrl: the parameters cannot be parsed"))
	}
	q := url.Values{}
	for name, values := range given {
		switch {
		case name == "sslMode":
			q.Set("ssl-mode", values[len(values)-1])
		case name == "useSSL":
			mode, ok := map[string]string{"true": "REQUIRED", "false": "DISABLED"}[strings.ToLower(values[0])]
			if !ok {
				panic(refusef("jdbcUrl: useSSL=%s: want true or false", values[0]))
			}
			q.Set("ssl-mode", mode)
		case !slices.Contains(ofNoValue, name):
			panic(refusef("jdbcUrl: the parameter %q is not converted; remove it if the job does not need it", name))
		}
	}
	u := url.URL{Scheme: "mysql", User: url.User(user), Host: m[1], Path: "/" + m[2], RawQuery: q.Encode()}
	if user == "" {
		u.User = nil
	}
	return u.String()
}

// with adds a parameter to an address. Commas and dollar signs are not escaped.
func with(address, name, value string) string {
	join := "?"
	if strings.Contains(address, "?") {
		join = "&"
	}
	return address + join + name + "=" + strings.NewReplacer("%2C", ",", "%24", "$").Replace(url.QueryEscape(value))
}

// table adds a load of a table, or of a query if the job has conditions or expressions.
func (j *Job) table(raw json.RawMessage, address, table, where string, l job.Single, columns []column, keys int) {
	for _, part := range strings.Split(table, ".") {
		if !sqlName.MatchString(part) || strings.Contains(bare(part), ".") {
			panic(refusef("table %q: not converted; want TABLE or SCHEMA.TABLE", table))
		}
	}
	sources, ok := texts(raw)
	if !ok || len(sources) == 0 {
		panic(refusef("column: want a list of names"))
	}
	all := len(sources) == 1 && strings.TrimSpace(sources[0]) == "*"
	if !all && len(sources) != len(columns) {
		panic(refusef("the reader has %d columns, but the writer has %d", len(sources), len(columns)))
	}
	named := !all // all are columns of the table
	for i, s := range sources {
		sources[i] = strings.TrimSpace(s)
		named = named && sqlName.MatchString(sources[i]) && !isConstant(sources[i])
	}
	if !named || where != "" {
		selected := sources
		if named { // an expression may already have a name
			selected = nil
			for i, s := range sources {
				selected = append(selected, s+" AS "+quoted(columns[i].name))
			}
		}
		query := "SELECT " + strings.Join(selected, ", ") + " FROM " + table
		if where != "" {
			query += " WHERE (" + where + "\n)"
		}
		j.query(address, query, named, l, columns, keys)
		return
	}
	parts := strings.Split(table, ".")
	for i, p := range parts {
		parts[i] = bare(p)
	}
	l.From = []string{with(address, "table", strings.Join(parts, "."))}
	seen := map[string]bool{}
	var rename, taken, pk []string
	for i, c := range columns {
		source := bare(sources[i])
		if seen[source] {
			panic(refusef("column %q is read twice; give it by --set", source))
		}
		seen[source] = true
		if strings.ContainsAny(source, ",=\"{}$ \t") {
			panic(refusef("column: the name %q is not converted", source))
		}
		if i < keys {
			entry := c.name + ":" + c.kind
			if source != c.name {
				entry += "=col(" + strconv.Quote(source) + ")"
			}
			pk = append(pk, entry)
			continue
		}
		taken = append(taken, source)
		if source != c.name {
			rename = append(rename, source+"="+c.name)
		}
	}
	set(&l, "pk", pk...)
	j.attributes(&l, columns[keys:], taken, rename)
	j.note("table " + table + ": it is read by its primary key; if pk has other columns, run refuses the load")
	j.add(l)
}

// isConstant reports whether a column of DataX is an SQL keyword instead of a name.
func isConstant(s string) bool {
	return slices.Contains([]string{"null", "true", "false", "current_date", "current_time", "current_timestamp",
		"current_user", "user", "localtime", "localtimestamp", "session_user"}, strings.ToLower(s))
}

// query adds a load of a query's rows. Its columns have the writer's order and, if named is set, the writer's names.
func (j *Job) query(address, query string, named bool, l job.Single, columns []column, keys int) {
	query = strings.TrimRight(query, "; \t\n")
	var names, pk, key, taken []string
	for i, c := range columns {
		names = append(names, quoted(c.name))
		if i < keys {
			key, pk = append(key, c.name), append(pk, c.name+":"+c.kind)
		} else {
			taken = append(taken, c.name)
		}
	}
	if !named {
		list := strings.Join(names, ", ")
		query = "WITH job (" + list + ") AS (" + query + "\n) SELECT " + list + " FROM job"
		j.note("the queries of this job name their columns by WITH, which needs MySQL 8.0 or MariaDB 10.2")
	}
	l.From = []string{with(address, "key", strings.Join(key, ","))}
	set(&l, "query", query)
	set(&l, "pk", pk...)
	j.attributes(&l, columns[keys:], taken, nil)
	j.note("times in conditions and queries are in UTC; DataX's are in the zone of its machine, or of the server. Write " +
		"a zone, or add the hours")
	j.note("queries are read with an empty sql_mode: if the server's has ANSI_QUOTES, PIPES_AS_CONCAT or " +
		"NO_BACKSLASH_ESCAPES, they may mean something else")
	j.note("no two rows of a query may share " + strings.Join(key, ", ") +
		": the load stops at rows that do. One session reads the query, sorted by these columns")
	j.add(l)
}

// attributes sets the attribute columns, their sources and their names.
func (j *Job) attributes(l *job.Single, columns []column, taken, rename []string) {
	set(l, "columns", strings.Join(taken, ","))
	if len(rename) > 0 {
		set(l, "rename", rename...)
	}
	var types []string
	for i, c := range columns {
		types = append(types, taken[i]+"="+c.kind)
	}
	if len(types) > 0 {
		set(l, "type", types...)
	}
}

// add adds a load under a unique name.
func (j *Job) add(l job.Single) {
	table := l.Name
	for n := 2; slices.ContainsFunc(j.File.Loads, func(other job.Single) bool { return other.Name == l.Name }); n++ {
		l.Name = fmt.Sprintf("%s_%d", table, n)
	}
	if l.Name != table {
		set(&l, "table", table)
	}
	j.File.Loads = append(j.File.Loads, l)
}

// numbered matches a name with table numbers, such as orders[0-31] or orders_[00-15].
var numbered = regexp.MustCompile(`^((?:\w+\.)?\w+)\[(\d{1,6})-(\d{1,6})\](\w*)$`)

// mostTables is the maximum number of tables of one reader.
const mostTables = 1000

// expandTable expands a table name as DataX does: parts are separated by commas, and may have a range of numbers.
func expandTable(text string) (names []string) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		m := numbered.FindStringSubmatch(part)
		if m == nil {
			names = append(names, part)
			continue
		}
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[3])
		digits := m[2]
		if from > to {
			from, to, digits = to, from, m[3]
		}
		if to-from >= mostTables {
			panic(refusef("table %q: more than %d tables", part, mostTables))
		}
		for n := from; n <= to; n++ {
			number := strconv.Itoa(n)
			if strings.HasPrefix(digits, "0") {
				number = fmt.Sprintf("%0*d", len(digits), n)
			}
			names = append(names, m[1]+number+m[4])
		}
	}
	return names
}
