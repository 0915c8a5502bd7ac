package commands

import (
	"fmt"
	"os"
	"testing"

	"example.com/tsimport/reader/archivefile"
)

func TestAnArchiveByAFilterIsAPartOfItsTable(t *testing.T) {
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,n,s\n1,1,a\n2,2,b\n3,,c\n4,4,d\n")
	tsimport(0, "load", "a.csv", "-t", "t", "--pk", "id:integer", "--type", "n=integer")
	export := func(want int, more ...string) string {
		t.Helper()
		return tsimport(want, append([]string{"export", "-t", "t", "--filter", "n >= 2"}, more...)...)
	}
	export(0, "-o", "part/")
	m, err := archive.Read("part")
	must(t, err)
	if m.Rows != 2 || m.Cells != 4 || m.Holds.Filter != "n >= 2" {
		t.Errorf("the archive has %d rows of %d cells and holds %+v", m.Rows, m.Cells, m.Holds)
	}
	many := "s" // more columns than a request names: all of them are read
	for i := range 200 {
		many += fmt.Sprintf(",c%d", i)
	}
	for dir, more := range map[string][]string{
		"filter": {"--columns", "s"}, "where": {"--columns", "s", "--where", "n >= 2"}, "many": {"--columns", many},
	} {
		export(0, append(more, "-o", dir+"/")...) // the conditions need n, and the archive does not hold it
		m, err = archive.Read(dir)
		must(t, err)
		if m.Rows != 2 || m.Cells != 2 {
			t.Errorf("%s: the archive has %d rows of %d cells", dir, m.Rows, m.Cells)
		}
	}
	for _, command := range []string{"check", "inspect", "advise"} {
		holds(t, tsimport(2, command, "part"), "part is an archive of a table, which "+command+" does not read")
	}
	for _, whole := range [][]string{nil, {"--range", "2.."}} {
		args := append([]string{"sync", "part", "-t", "t", "--delete", "--max-delete", "100%"}, whole...)
		holds(t, tsimport(2, args...), "only the rows that its --filter or --where let through")
	}
	tsimport(0, "verify", "a.csv", "-t", "t", "--type", "n=integer", "--extra", "fail")
	holds(t, tsimport(2, "export", "-t", "t", "-o", "bad/", "--filter", "n >="), "--filter n >=")
	if _, err := os.Stat("bad"); !os.IsNotExist(err) {
		t.Errorf("a refused export has made its folder: %v", err)
	}
}
