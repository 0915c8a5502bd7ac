package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tableKind is a table format that logs a table's current files. Other files in the table's folder may hold old rows.
type tableKind struct {
	name   string
	folder string                 // name of the log's folder inside the table's folder
	file   func(name string) bool // reports whether a file in folder is of this format; nil if the folder's name is enough
	export string                 // how to export the table's rows
}

var tableKinds = []*tableKind{
	{name: "a Delta Lake table", folder: "_delta_log",
		export: "in DuckDB COPY (SELECT * FROM delta_scan('TABLE')) TO 'rows.parquet'"},
	{name: "an Apache Hudi table", folder: ".hoodie",
		export: "in Spark spark.read.format(\"hudi\").load('TABLE').write.parquet('rows')"},
	{name: "an Apache Iceberg table", folder: "metadata", file: isIcebergMetadata,
		export: "in DuckDB COPY (SELECT * FROM iceberg_scan('TABLE')) TO 'rows.parquet'"},
	{name: "an Apache Paimon table", folder: "snapshot", file: isPaimonSnapshot,
		export: "in Spark spark.read.format(\"paimon\").load('TABLE').write.parquet('rows')"},
}

func isIcebergMetadata(name string) bool {
	return strings.Contains(name, ".metadata.json") || name == "version-hint.text"
}

func isPaimonSnapshot(name string) bool {
	number, found := strings.CutPrefix(name, "snapshot-")
	return name == "LATEST" || found && number != "" && strings.Trim(number, "0123456789") == ""
}

// refuse returns the error for input name, which is in the table at folder.
func (k *tableKind) refuse(name, folder string) error {
	return fmt.Errorf("open input %s: it belongs to %s (%s has %s), whose folder also has stale files; load an export by "+
		"a program that reads the table's log, such as %s; a file copied to another folder is read as it is",
		name, k.name, folder, k.folder, strings.ReplaceAll(k.export, "TABLE", folder))
}

// tableData reports whether a file with this name may hold rows of a table.
func tableData(name string) bool {
	return slices.Contains([]string{".parquet", ".parq", ".orc", ".avro"}, strings.ToLower(path.Ext(name)))
}

type tableAt struct {
	kind   *tableKind
	folder string
}

// logs reports whether name belongs to the table's log.
func (t *tableAt) logs(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(name, t.folder), "/"), t.kind.folder+"/")
}

// checkTable refuses a file that is part of a table. If the table is above base, only data files are refused.
func (e *expander) checkTable(name, base string) error {
	folder, err := realFolder(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("open input %s: %w", name, err)
	}
	t := e.localTable(folder)
	if t == nil || t.logs(filepath.ToSlash(filepath.Join(folder, filepath.Base(name)))) {
		return nil
	}
	if !tableData(name) {
		top, err := realFolder(base)
		if err != nil || t.folder != top && !strings.HasPrefix(t.folder, strings.TrimSuffix(top, "/")+"/") {
			return err
		}
	}
	return t.kind.refuse(name, t.folder)
}

// realFolder returns a folder's absolute path with all links resolved.
func realFolder(name string) (string, error) {
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real
	}
	return filepath.ToSlash(full), nil
}

// localTable returns the table that contains a folder, or nil.
func (e *expander) localTable(folder string) *tableAt {
	if t, known := e.tables[folder]; known {
		return t
	}
	var found *tableAt
	for _, k := range tableKinds {
		if k.isLocal(folder) {
			found = &tableAt{k, folder}
			break
		}
	}
	if up := path.Dir(folder); found == nil && up != folder {
		found = e.localTable(up)
	}
	e.tables[folder] = found
	return found
}

// isLocal reports whether a folder holds a table of this kind. If its log is unreadable, reading its files fails later.
func (k *tableKind) isLocal(folder string) bool {
	log := filepath.Join(folder, k.folder)
	info, err := os.Stat(log)
	if err != nil || !info.IsDir() {
		return false
	}
	if k.file == nil {
		return true
	}
	entries, _ := os.ReadDir(log)
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return k.file(entry.Name()) })
}

// tableOfKey returns the table whose log contains an object with this key, or nil.
func tableOfKey(key string) *tableAt {
	for _, k := range tableKinds {
		at := strings.LastIndex("/"+key, "/"+k.folder+"/")
		if at < 0 {
			continue
		}
		rest := key[at+len(k.folder)+1:]
		if k.file == nil || !strings.Contains(rest, "/") && k.file(rest) {
			return &tableAt{k, key[:at]}
		}
	}
	return nil
}

// checkTables refuses the objects in Items[before:] if they are part of a table, by listed logs or by their folder.
func (l *lister) checkTables(ctx context.Context, before int, base string, listed []*tableAt) error {
	for _, i := range l.set.Items[before:] {
		key := strings.TrimPrefix(i.Name, l.name(""))
		for _, t := range listed {
			if strings.HasPrefix(key, t.folder) && !t.logs(key) {
				return t.kind.refuse(i.Name, l.name(t.folder))
			}
		}
	}
	for _, i := range l.set.Items[before:] {
		if tableData(i.Name) {
			return l.checkAbove(ctx, i.Name, base)
		}
	}
	return nil
}

// checkAbove refuses an object if its folder, or a folder above that, is a table.
func (l *lister) checkAbove(ctx context.Context, name, folder string) error {
	folder = strings.TrimSuffix(strings.TrimPrefix(folder, "/"), "/")
	for {
		if !strings.Contains(path.Base(folder), "=") { // skip partition folders
			t, err := l.remoteTable(ctx, folder)
			if err != nil {
				return err
			}
			if t != nil && !t.logs(strings.TrimPrefix(name, l.name(""))) {
				return t.kind.refuse(name, l.name(t.folder))
			}
		}
		if folder == "" {
			return nil
		}
		if folder = path.Dir(folder); folder == "." {
			folder = ""
		}
	}
}

// remoteTable returns the table in a bucket's folder. It returns nil if there is none or listing is forbidden.
func (l *lister) remoteTable(ctx context.Context, folder string) (*tableAt, error) {
	if folder != "" {
		folder += "/"
	}
	id := l.name(folder)
	if t, known := l.tables[id]; known {
		return t, nil
	}
	var found *tableAt
	for _, k := range tableKinds {
		page, err := l.page(ctx, listing{prefix: folder + k.folder + "/"}, "", 0)
		if errors.Is(err, fs.ErrPermission) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, o := range page.Objects {
			if found == nil {
				if t := tableOfKey(o.Key); t != nil && t.folder == folder {
					found = t
				}
			}
		}
	}
	l.tables[id] = found
	return found, nil
}
