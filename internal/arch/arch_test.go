package arch

import (
	"cmp"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

const module = "example.com/tsimport"

// arrowsOf parses lines such as "a b: c d", which allow packages a and b to import c and d; # begins a comment.
func arrowsOf(text string) map[string][]string {
	arrows, rooms := map[string][]string{}, []string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if left, right, ok := strings.Cut(line, ":"); ok {
			rooms, line = strings.Fields(left), right
		}
		for _, room := range rooms {
			arrows[room] = append(strings.Fields(line), arrows[room]...)
		}
	}
	return arrows
}

// arrows lists the packages of this module that each package may import. Imports point down to table; a stage never
// imports a sibling. The engine checks the other packages, so it shares no code with them. engine/limiter models the
// service's limits; only the engine and tests use it.
var arrows = arrowsOf(`
.: pipeline/lanes pipeline/ledger pipeline/keep internal/exitcode reader/open transfer/fromtable transfer/restore
  internal/table internal/tablestore/accesskey internal/tablestore/address internal/tablestore/client pipeline
  pipeline/options pipeline/plan jobs/recurring reader/record reader/source
cmd/tsimport: cmd/tsimport/commands
cmd/tsimport/commands: cmd/tsimport/collection pipeline/lanes pipeline/ledger pipeline/keep pipeline/fromdatabase
  reader/open transfer/restore internal/words internal/errorcodes internal/exitcode internal/runmetrics internal/spill
  internal/suggest . cmd/tsimport/advise cmd/tsimport/advise/simulate internal/lifecycle transfer/lifecycle/apply
  transfer/lifecycle/archive bench bench/result bench/write pipeline/bottleneck pipeline/checkpoint
  internal/tablestore/client jobs/job jobs/job/datax engine/faults engine/server engine/sim internal/jobdir
  jobs/knownfiles transfer/copytable transfer/fromtable reader/archivefile transfer/export transfer/tablesync
  internal/keyexpr internal/atomicfile internal/progress engine/limiter internal/page pipeline pipeline/options
  pipeline/plan jobs/recurring reader reader/convert reader/csv reader/input pipeline/report pipeline/rundir
  internal/tablestore/accesskey internal/tablestore/address internal/tablestore/profile internal/tablestore/condition
  internal/tablestore/scan reader/source reader/tablescan reader/mysql reader/sqlite reader/postgres reader/sqltable
  pipeline/status internal/table jobs/scaleout jobs/scaleout/kubernetes transfer/verify
jobs/job/datax: internal/tablestore/address jobs/job
jobs/job: internal/progress internal/suggest internal/table internal/atomicfile internal/exitcode pipeline/options
  pipeline/rundir reader/input reader/source
jobs/knownfiles: internal/progress internal/exitcode internal/jobdir pipeline/checkpoint reader/input
cmd/tsimport/advise: internal/words internal/keyexpr cmd/tsimport/advise/simulate cmd/tsimport/advise/sketch reader
  reader/convert reader/input reader/record internal/table reader/source
internal/lifecycle: internal/table
transfer/lifecycle/apply: ratelimit internal/lifecycle transfer/lifecycle/archive reader/tablescan
  internal/tablestore/client internal/tablestore/scan internal/words
transfer/lifecycle/archive: pipeline/rundir internal/progress internal/jobdir internal/atomicfile reader/archivefile
  reader/jsonl reader/record reader/source reader/tablescan transfer/export internal/table
pipeline/ledger: internal/atomicfile internal/exitcode internal/table internal/tablestore/plainbuffer
  internal/timeline partitioner pipeline/bottleneck pipeline/checkpoint pipeline/intake pipeline/keep pipeline/plan
  pipeline/rundir reader/jsonl reader/record reader/source writer
pipeline/keep: internal/progress internal/atomicfile internal/exitcode internal/jobdir internal/table
  internal/tablestore/client pipeline/checkpoint pipeline/intake pipeline/plan pipeline/rundir ratelimit reader/source
  shuffle/readorder writer
pipeline/lanes: internal/spill internal/table internal/tablestore/client partitioner pipeline/bottleneck
  pipeline/checkpoint pipeline/keep pipeline/ledger pipeline/plan pipeline/sendwindow ratelimit shuffle writer
pipeline: internal/progress pipeline/lanes pipeline/ledger pipeline/keep internal/atomicfile internal/jobdir
  internal/exitcode internal/tablestore/condition shuffle/readorder pipeline/sendwindow pipeline/plan pipeline/intake
  shuffle internal/spill internal/tablestore/scan partitioner ratelimit writer internal/tablestore/client
  pipeline/rundir pipeline/bottleneck pipeline/checkpoint internal/timeline internal/tablestore/plainbuffer
  internal/table reader/source reader/jsonl reader/record
pipeline/intake: shuffle/readorder internal/keyexpr pipeline/plan reader reader/convert reader/jsonl reader/record
  internal/tablestore/encode internal/tablestore/plainbuffer partitioner internal/table reader/source
pipeline/plan: internal/progress internal/suggest internal/words internal/exitcode internal/tablestore/condition
  internal/lifecycle internal/keyexpr reader reader/convert reader/input reader/record internal/tablestore/client
  pipeline/rundir internal/table reader/source
pipeline/options: pipeline/lanes pipeline/ledger internal/tablestore/accesskey internal/tablestore/client
  internal/tablestore/condition internal/keyexpr internal/lifecycle pipeline pipeline/plan pipeline/rundir reader
  reader/convert reader/csv internal/table
jobs/recurring: internal/progress internal/jobdir internal/suggest internal/table jobs/knownfiles pipeline
  pipeline/checkpoint pipeline/options pipeline/plan pipeline/rundir reader/input internal/words
pipeline/fromdatabase: internal/keyexpr internal/suggest internal/table internal/tablestore/client pipeline
  pipeline/options pipeline/plan reader/input reader/open reader/sqltable internal/words
pipeline/status: pipeline/lanes pipeline pipeline/bottleneck
# A job of many processes consists of loads whose rows exist already.
jobs/scaleout: internal/progress pipeline/lanes pipeline/ledger pipeline/keep jobs/scaleout/runfile internal/exitcode
  internal/extsort internal/jobdir internal/page internal/spill internal/table partitioner pipeline
  pipeline/checkpoint pipeline/intake pipeline/plan shuffle/readorder pipeline/rundir reader/input reader/record
  reader/source transfer/verify internal/tablestore/client internal/words
jobs/scaleout/runfile: internal/jobdir
jobs/scaleout/kubernetes: internal/exitcode
transfer/verify: internal/progress reader/jsonl reader/record reader/source pipeline/plan pipeline/intake
  internal/tablestore/scan internal/exactcsv internal/extsort internal/spill partitioner internal/tablestore/client
  pipeline/rundir internal/tablestore/plainbuffer internal/table
internal/extsort: internal/spill internal/table
reader/archivefile: internal/progress reader/input reader/jsonl reader/record reader/source internal/atomicfile
  internal/jobdir internal/table
transfer/export: pipeline/rundir internal/progress internal/keyexpr reader/jsonl reader/archivefile internal/jobdir
  reader/record reader/source reader/tablescan internal/atomicfile internal/tablestore/scan internal/tablestore/client
  internal/tablestore/plainbuffer internal/table
# A sync is a comparison and two loads.
transfer/tablesync: internal/progress pipeline/ledger pipeline/keep ratelimit reader/source internal/exitcode
  transfer/verify pipeline pipeline/plan pipeline/checkpoint pipeline/rundir reader reader/jsonl reader/record
  internal/atomicfile internal/tablestore/client internal/tablestore/plainbuffer internal/tablestore/scan
  internal/table internal/words
transfer/restore: internal/jobdir internal/suggest internal/table internal/tablestore/client internal/words pipeline
  pipeline/fromdatabase pipeline/options pipeline/plan reader/archivefile reader/input reader/source
  transfer/copytable transfer/verify
transfer/fromtable: internal/keyexpr internal/table internal/tablestore/client internal/tablestore/condition
  internal/tablestore/scan internal/words pipeline pipeline/options pipeline/plan reader/tablescan transfer/copytable
  transfer/restore
transfer/copytable: pipeline/plan reader/tablescan transfer/verify internal/tablestore/scan internal/tablestore/client
  internal/tablestore/plainbuffer internal/table internal/words
reader: reader/arrow reader/charset reader/compress reader/convert reader/csv reader/input reader/jsonl reader/parquet
  reader/record internal/table reader/source reader/sqldump reader/pgdump reader/mysqldump
reader/open: internal/suggest reader/input reader/mysql reader/postgres reader/sqlite reader/sqltable
reader/sqldump: internal/table reader/record reader/sqlname
reader/pgdump: internal/table reader/record reader/sqldump reader/sqlname
reader/mysqldump: internal/table reader/record reader/sqldump reader/sqlname
reader/convert: reader/record internal/table
reader/csv: reader/record internal/table
reader/input: internal/objectstore internal/tablestore/address ratelimit
reader/jsonl: reader/record internal/table
reader/arrow: reader/jsontext reader/record internal/table reader/source
reader/jsontext: reader/record
reader/parquet: reader/jsontext reader/record internal/table reader/source
reader/record: internal/table
reader/source: internal/table reader/record
reader/mysql/mysqltest: internal/conformance reader/sqltable/sqltest
reader/mysql: ratelimit reader/record reader/source reader/sqltable
reader/sqlite: internal/suggest internal/table reader/record reader/sqltable
reader/sqltable/sqltest: internal/conformance internal/table reader/convert reader/record reader/source
  reader/source/sourcetest reader/sqldump reader/sqltable
reader/postgres/pgtest: internal/conformance reader/sqltable/sqltest
reader/sqltable: ratelimit internal/suggest internal/table reader/record reader/source
reader/postgres: ratelimit reader/record reader/source reader/sqlname reader/sqltable
reader/tablescan: internal/table internal/tablestore/client internal/tablestore/plainbuffer internal/tablestore/scan
  internal/keyexpr reader/record reader/source
reader/source/sourcetest: internal/conformance internal/table reader/record reader/source
internal/keyexpr: internal/exactcsv internal/suggest internal/table
internal/tablestore/encode: internal/tablestore/plainbuffer internal/table
shuffle: internal/spill internal/table
partitioner shuffle/readorder: internal/table
writer: internal/tablestore/condition internal/tablestore/client internal/tablestore/plainbuffer internal/table
internal/tablestore/scan: internal/tablestore/client internal/tablestore/plainbuffer ratelimit internal/table
internal/tablestore/accesskey: internal/tablestore/client ratelimit
internal/tablestore/address: internal/table
internal/tablestore/profile: internal/tablestore/accesskey internal/tablestore/address
internal/tablestore/condition: internal/table internal/tablestore/client
internal/tablestore/tabletest: engine/server internal/conformance internal/table internal/tablestore/client
internal/tablestore/client: internal/tablestore/plainbuffer ratelimit internal/table
pipeline/rundir: internal/progress internal/atomicfile internal/table
pipeline/checkpoint: internal/progress internal/atomicfile internal/table pipeline/rundir
internal/tablestore/plainbuffer: internal/table
cmd/tsbench: bench bench/null cmd/tsimport/commands internal/tablestore/client pipeline pipeline/plan
bench/null: bench internal/tablestore/plainbuffer internal/table
bench/write: bench bench/result pipeline/plan internal/tablestore/client internal/tablestore/encode partitioner
  ratelimit internal/tablestore/scan internal/table writer internal/words
bench/result: internal/timeline internal/words
pipeline/report: pipeline/ledger internal/exitcode internal/words internal/atomicfile internal/page pipeline
  pipeline/bottleneck pipeline/rundir
internal/jobdir: internal/progress ratelimit internal/atomicfile internal/objectstore
internal/objectstore: internal/httplimit
internal/exitcode: internal/tablestore/client
internal/runmetrics: internal/atomicfile internal/httplimit
internal/errorcodes: internal/exitcode internal/tablestore/client
internal/progress: internal/atomicfile
engine/enginetest: engine/server engine/wire
engine/server: engine/filter engine/store engine/wire engine/faults engine/sim
engine/store: engine/filter engine/wire
engine/filter: engine/wire
engine/faults: engine/wire
engine/sim: engine/limiter
internal/notices: internal/conformance
e2e/compatibility: # all of it is test code
internal/objectstore/storetest internal/conformance: # only tests import it
internal/mutants: # tests only
cmd/tsimport/collection cmd/tsimport/advise/simulate cmd/tsimport/advise/sketch pipeline/bottleneck:
pipeline/sendwindow internal/exactcsv internal/words reader/sqlname reader/charset reader/compress ratelimit:
internal/table bench internal/page internal/timeline internal/httplimit internal/spill internal/suggest:
engine/limiter internal/atomicfile engine/contract engine/model engine/wire internal/arch e2e:
`)

// testArrows lists additional packages that tests may import. Every test may import internal/conformance.
var testArrows = arrowsOf(`
.: reader reader/input reader/source/sourcetest reader/mysql/mysqltest reader/open reader/postgres/pgtest
  reader/sqltable engine/faults engine/server engine/sim internal/tablestore/scan
pipeline/lanes: pipeline/intake
pipeline/intake pipeline/keep: reader/source/sourcetest
pipeline: internal/lifecycle engine/enginetest engine/server engine/faults engine/sim internal/tablestore/scan reader
  internal/keyexpr transfer/verify reader/source/sourcetest reader/record reader/convert internal/tablestore/tabletest
jobs/scaleout: engine/enginetest engine/server engine/sim internal/tablestore/client internal/tablestore/condition
  internal/tablestore/scan internal/objectstore/storetest reader/source/sourcetest internal/tablestore/tabletest
jobs/scaleout/runfile: internal/objectstore/storetest
pipeline/plan: reader/source/sourcetest internal/lifecycle engine/server internal/tablestore/tabletest
transfer/copytable: engine/server engine/faults internal/keyexpr internal/tablestore/tabletest
transfer/restore: engine/server engine/faults internal/tablestore/tabletest
internal/tablestore/scan: engine/enginetest engine/server engine/faults internal/tablestore/tabletest
internal/tablestore/client: engine/server engine/faults engine/sim engine/wire
writer: engine/server engine/faults internal/tablestore/encode
transfer/verify: engine/server engine/faults reader/input reader/record reader/source/sourcetest internal/keyexpr
  internal/tablestore/tabletest reader/open reader/sqltable reader/tablescan
transfer/export: internal/objectstore/storetest internal/tablestore/plainbuffer reader/input engine/server engine/sim
  engine/faults reader/source/sourcetest internal/tablestore/tabletest
reader/archivefile: reader/source/sourcetest
cmd/tsimport/commands: reader/record engine/enginetest internal/objectstore/storetest
e2e/compatibility: engine/server engine/sim cmd/tsimport/commands
transfer/tablesync: pipeline/lanes engine/server engine/faults internal/tablestore/condition reader/tablescan
  internal/tablestore/tabletest
e2e: reader/mysql/mysqltest reader/postgres/pgtest reader/source internal/objectstore/storetest pipeline/checkpoint
  engine/server engine/faults bench bench/result
bench/null: internal/tablestore/client
cmd/tsbench: internal/table internal/tablestore/encode internal/tablestore/plainbuffer writer
engine/model: engine/server engine/sim
engine/contract: engine/enginetest engine/server engine/sim
bench/write: engine/server engine/faults engine/sim internal/tablestore/tabletest
pipeline/report: engine/server internal/timeline
cmd/tsimport/advise: bench
reader: reader/source/sourcetest
reader/input: internal/objectstore/storetest
internal/jobdir: internal/objectstore/storetest
reader/postgres: reader/sqltable/sqltest reader/postgres/pgtest
reader/mysql: reader/sqltable/sqltest reader/mysql/mysqltest
reader/sqlite: reader/source reader/sqltable/sqltest
reader/mysqldump: reader/sqltable/sqltest reader/mysql reader/mysql/mysqltest
reader/pgdump: reader/sqltable/sqltest reader/postgres reader/postgres/pgtest
reader/tablescan: engine/server engine/faults reader/source/sourcetest internal/tablestore/tabletest
transfer/lifecycle/apply: engine/server engine/faults internal/jobdir internal/objectstore/storetest internal/table
  reader/archivefile internal/tablestore/tabletest
transfer/lifecycle/archive: engine/server internal/objectstore/storetest internal/tablestore/client
  internal/tablestore/tabletest
partitioner: shuffle
ratelimit: engine/limiter
`)

var standardOnly = []string{"internal/table", "engine/limiter"}

// goroutineRooms are the only packages that may start goroutines outside tests.
var goroutineRooms = []string{".", "jobs/job", "pipeline", "pipeline/intake", "reader/input", "internal/jobdir",
	"cmd/tsimport/commands", "internal/tablestore/client", "engine/server", "engine/enginetest", "engine/store",
	"engine/faults", "cmd/tsbench", "bench/write"}

// fileRooms are the only packages that may create, write or rename files outside tests, in the program's own folders.
// Paths given by users are written through internal/atomicfile, which handles links, pipes and devices.
var fileRooms = []string{"pipeline/ledger", "internal/atomicfile", "internal/spill", "internal/jobdir",
	"internal/notices", "pipeline", "pipeline/rundir", "pipeline/options", "reader/archivefile", "transfer/export",
	"transfer/tablesync", "cmd/tsbench", "reader/mysql/mysqltest", "reader/postgres/pgtest", "reader/sqltable/sqltest",
	"internal/conformance"}

func writesFiles(call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	room, ok := of.X.(*ast.Ident)
	return ok && room.Name == "os" && slices.Contains([]string{"Create", "CreateTemp", "OpenFile", "Rename", "WriteFile"},
		of.Sel.Name)
}

func TestImportsAreListed(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	ownModule := func(folder string) bool { // another module is not a package of this one
		_, err := os.Stat(filepath.Join(root, folder, "go.mod"))
		return err == nil
	}
	eachFile(t, ownModule, func(name, rel string) {
		if strings.HasSuffix(name, ".go") {
			seen[path.Dir(rel)] = true
			checkFile(t, name, path.Dir(rel))
		}
	})
	for room := range arrows {
		conformance.True(t, seen[room] || room == "e2e", "room %s is listed and has no code", room)
	}
	for room := range seen {
		conformance.True(t, conformance.ErrorOf(os.Stat(filepath.Join(root, room, "doc.go"))) == nil, "no doc.go: %s", room)
	}
}

// eachFile calls do for every file outside testdata and skipped folders, with its path from here and from the root.
func eachFile(t *testing.T, skip func(folder string) bool, do func(name, rel string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		switch {
		case err != nil || name == root:
			return err
		case !entry.IsDir():
			do(name, rel)
		case entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") || !isKept(rel) || skip(rel):
			return fs.SkipDir
		}
		return nil
	})
	conformance.Must(t, err)
}

func checkFile(t *testing.T, name, room string) {
	allowed, known := arrows[room]
	if !known {
		t.Errorf("%s: room %s is not listed", name, room)
		return
	}
	isTest := strings.HasSuffix(name, "_test.go")
	if isTest {
		allowed = slices.Concat(allowed, testArrows[room], []string{room, "internal/conformance"})
	}
	file, _ := parsed(t, name)
	for _, spec := range file.Imports {
		imported := conformance.Try(strconv.Unquote(spec.Path.Value)).Must(t)
		own, ours := strings.CutPrefix(imported, module+"/")
		if imported == module {
			own, ours = ".", true
		}
		conformance.True(t, !ours || slices.Contains(allowed, own), "%s: arrow %s -> %s is not listed", name, room, own)
		conformance.True(t, ours || isTest || !slices.Contains(standardOnly, room) ||
			!strings.Contains(strings.SplitN(imported, "/", 2)[0], "."),
			"%s: room %s imports %s, it keeps to the standard library", name, room, imported)
	}
	if isTest {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && writesFiles(call) && !slices.Contains(fileRooms, room) {
			t.Errorf("%s: writes a file by itself; a path that a user has given is for internal/atomicfile", name)
		}
		if _, ok := n.(*ast.GoStmt); ok && !slices.Contains(goroutineRooms, room) {
			t.Errorf("%s: starts a goroutine; only %s may", name, strings.Join(goroutineRooms, ", "))
		}
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "WithValue" && !strings.HasPrefix(room, "engine/") {
			t.Errorf("%s: puts a value into a context; what a function needs is a parameter", name)
		}
		return true
	})
}

// TestFoldersDoNotImportEachOther compares the first folders in which the paths of importer and imported differ.
func TestFoldersDoNotImportEachOther(t *testing.T) {
	imports := map[[2]string]string{}
	for room, all := range arrows {
		for _, imported := range all {
			from, to := strings.Split(room, "/"), strings.Split(imported, "/")
			for n := range min(len(from), len(to)) {
				if from[n] != to[n] {
					imports[[2]string{path.Join(from[:n+1]...), path.Join(to[:n+1]...)}] = room + " -> " + imported
					break
				}
			}
		}
	}
	for pair, arrow := range imports {
		if back := imports[[2]string{pair[1], pair[0]}]; back != "" && pair[0] < pair[1] {
			t.Errorf("%s and %s import each other: %s, %s", pair[0], pair[1], arrow, back)
		}
	}
}

// mostFolders limits the number of top-level folders, which are the first things that a reader of the repository sees.
const mostFolders = 17

func TestTopLevelFoldersAreFew(t *testing.T) {
	entries := conformance.Try(os.ReadDir(filepath.Join("..", ".."))).Must(t)
	ignored := string(conformance.Read(t, "../..", ".gitignore")) // includes the folders that commands create
	var folders []string
	for _, e := range entries {
		if made := strings.Contains(ignored, "\n/"+e.Name()+"/\n"); e.IsDir() && e.Name()[0] != '.' && !made {
			folders = append(folders, e.Name())
		}
	}
	conformance.True(t, len(folders) <= mostFolders,
		"%d folders are at the top, more than %d: %s", len(folders), mostFolders, strings.Join(folders, " "))
}

// maxFields limits the fields of a struct of the load path: a larger one is really two types. The fields of a struct
// embedded from the same package count, except in JSON documents, which flatten it; an embedded pointer counts as one.
const maxFields = 15

// loadPath lists the packages that rows pass through. The packages below them belong to it too.
var loadPath = []string{"pipeline", "shuffle", "partitioner", "writer", "reader", "ratelimit"}

// wideStructs lists the structs with more than maxFields fields. The comment of each must say why.
var wideStructs = []string{
	"pipeline/checkpoint.About",
	"pipeline/checkpoint.Job",
	"pipeline/intake.partMaker",
	"pipeline/options.Option",
	"pipeline/plan.Inspection",
	"pipeline/plan.Plan",
	"pipeline/plan.Request",
	"reader.File",
	"reader/archivefile.Manifest",
	"reader/source.About",
	"reader.textReader",
	"reader/jsonl.Parser",
	"reader/parquet.column",
	"reader/parquet.values",
}

func TestLoadPathStructsAreSmall(t *testing.T) {
	root := filepath.Join("..", "..")
	wide := map[string]bool{}
	counted := 0
	for _, room := range slices.Sorted(maps.Keys(arrows)) {
		if top, _, _ := strings.Cut(room, "/"); !slices.Contains(loadPath, top) {
			continue
		}
		entries := conformance.Try(os.ReadDir(filepath.Join(root, room))).Must(t)
		structs, docs := map[string]*ast.StructType{}, map[string]string{}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, _ := parsed(t, filepath.Join(root, room, e.Name()))
			for _, d := range file.Decls {
				decl, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, x := range decl.Specs {
					if spec, ok := x.(*ast.TypeSpec); ok {
						if of, ok := spec.Type.(*ast.StructType); ok {
							structs[spec.Name.Name], docs[spec.Name.Name] = of, cmp.Or(spec.Doc, decl.Doc).Text()
						}
					}
				}
			}
		}
		for of := range structs {
			counted++
			n := fields(structs, of)
			if n <= maxFields {
				continue
			}
			name := room + "." + of
			wide[name] = true
			switch {
			case !slices.Contains(wideStructs, name):
				t.Errorf("%s has %d fields, more than %d: look for the second noun in it", name, n, maxFields)
			case !strings.Contains(strings.Join(strings.Fields(docs[of]), " "), "many fields"):
				t.Errorf("%s has %d fields, and its comment does not say why it has so many fields", name, n)
			}
		}
	}
	conformance.True(t, counted >= 100, "only %d structs were counted", counted)
	for _, name := range wideStructs {
		conformance.True(t, wide[name], "%s has %d fields or fewer: take it off the list", name, maxFields)
	}
}

func fields(structs map[string]*ast.StructType, of string) (n int) {
	for _, f := range structs[of].Fields.List {
		n += max(1, len(f.Names))
		if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 && structs[id.Name] != nil &&
			!isDocument(structs[id.Name]) {
			n += fields(structs, id.Name) - 1
		}
	}
	return n
}

func isDocument(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List,
		func(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "json:") })
}

// isKept reports whether a folder is part of the repository, not only of a working copy.
func isKept(folder string) bool {
	switch top, _, _ := strings.Cut(folder, "/"); top {
	case "dist", "try", "tsimport-store", "tsimport-runs", "node_modules":
		return false
	}
	return !strings.HasSuffix(folder, "/node_modules") && !strings.HasSuffix(folder, "/venv")
}
