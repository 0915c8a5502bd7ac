package commands

import (
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestNewTableHasItsDefinedIndexes(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "p.csv", "id,city,age,price,note\n1,HZ,30,1.5,x\n2,SH,20,2.5,\n3,HZ,20,,y\n")
	load := []string{"load", "p.csv", "--create", "--pk", "id:integer", "-t"}
	with := func(table string, define ...string) (args []string) {
		args = append(append(args, load...), table)
		for _, d := range define {
			args = append(args, "--define", d)
		}
		return args
	}
	said := tsimport(0, with("p", "index by_city(city, age) price", "local index own(id, city) note:string", "column price:double")...)
	holds(t, said, "gets the global index by_city with the key city, age and the columns price when all rows are written", "local index own")
	conformance.Equal(t, tsimport(0, "export", "-t", "by_city", "-q"), "city,age,id,price\nHZ,20,3,\nHZ,30,1,1.5\nSH,20,2,2.5\n", "index")
	conformance.Equal(t, tsimport(0, "export", "-t", "own", "-q"), "id,city,note\n1,HZ,x\n2,SH,\n3,HZ,y\n", "index")
	holds(t, tsimport(0, "load", "p.csv", "-t", "p", "--define", "column x:string"), "the table exists: the options for a new table")
	for _, c := range []struct{ define, want string }{
		{"index i", "want 'column NAME"}, {"index i()", "want 'column NAME"}, {"column a=b", "is not the name of a column"}, {"column a,", "column"}, {"index i(city,city)", "is named twice"},
		{"index i(city:thing)", "thing"}, {"column nope", "the type of column nope is unknown"}, {"column city:integer", "but loaded as string"}, {"index i(price)", "column price is double"},
		{"local index i(city)", "not the partition key, id"}, {"index i(city) city", "leave it out there"}, {"index p(city)", "has a table or an index with that name"}, {"index q(city)", "has a table or an index with that name"}, {"index i(city,age,price,note,id)", "at most 4 key and 32 other columns"},
	} {
		holds(t, tsimport(2, with("q", c.define)...), c.want)
	}
	holds(t, tsimport(2, with("q", "index i(city)", "index i(age)")...), "index i is already defined")
	holds(t, tsimport(2, with("q", "column city:string", "index i(city:binary)")...), "has the type string elsewhere")
	holds(t, tsimport(2, append(with("q", "index i(city)"), "--max-versions", "2")...), "keeps one version")
	holds(t, tsimport(2, append(with("q", "index i(city)"), "--ttl", "86400")...), "expire only if it refuses updates")
	holds(t, tsimport(2, with("q", "index a(city)", "index b(city)", "index c(city)", "index d(city)", "index e(city)", "index f(city)")...), "at most 5")
	holds(t, tsimport(2, with("q_{city}", "index i(city)")...), "use tsimport table create first")
	tsimport(2, "table", "describe", "q")

	tsimport(0, "table", "create", "z", "--pk", "a:string", "--pk", "b:integer", "--define", "local index lz(a, c:string) d:double", "--define", "column e:binary", "-q")
	holds(t, tsimport(0, "table", "describe", "z"), "local index lz with the key a, c and the columns d")
	holds(t, tsimport(2, "table", "create", "y", "--pk", "a:string", "--define", "column c"), "give the type of column c")
	holds(t, tsimport(2, "table", "create", "y", "--pk", "a:string", "--define", "index z(a)"), "has a table or an index with that name")
	tsimport(2, "table", "describe", "y")
}

func TestLoadWarnsThatGeneratedKeysAreNotSaved(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "m.csv", "g,x\na,1\n")
	const note = "the values that the service assigns to seq are lost"
	load := []string{"load", "m.csv", "-t", "m", "--create", "--pk", "g", "--pk", "seq:auto", "--fresh"}
	holds(t, tsimport(0, load...), note)
	said := tsimport(0, append(load, "--returned-keys", "k.csv")...)
	conformance.True(t, !strings.Contains(said, note), "of a load that keeps them: %s", said)
}
