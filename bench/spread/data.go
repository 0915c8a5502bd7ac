package spread

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// dataset is a file and what is known of it before anything is measured.
type dataset struct {
	path    string
	rows    int64 // records
	pk      []string
	key     []table.KeyColumn
	columns []column // of the CSV, in its order, and then the computed ones; nil when the SDK's loaders cannot read the file
	makers  []maker  // of the computed columns
	noSDK   string   // why not
	keys    *sample  // of the partition key
	want    *contents
	notes   []string
}

type column struct {
	name  string
	typ   table.Type
	isKey bool
}

// cardColumns are the student cards as they are loaded.
var cardColumns = []column{
	{"CardID", table.Integer, true}, {"SellerID", table.String, true}, {"DeviceID", table.Integer, true}, {"OrderNumber", table.Integer, true},
	{"Amount", table.Double, false}, {"OrderTime", table.String, false}, {"Item", table.String, false},
}

// makeCards writes the student-card dataset and looks at it. The contents come from the text, not from any loader.
func makeCards(ctx context.Context, cards bench.StudentCards, seed uint64, dir string) (*dataset, error) {
	d := &dataset{path: filepath.Join(dir, "student-cards.csv"), columns: cardColumns, keys: newSample(seed, maxSample), want: newContents()}
	for _, c := range cardColumns {
		if c.isKey {
			d.key = append(d.key, table.KeyColumn{Name: c.name, Type: c.typ})
			d.pk = append(d.pk, c.name+":"+c.typ.String())
		}
	}
	f, err := os.Create(d.path)
	if err != nil {
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	err = cards.WriteCSV(ctx, f)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("write dataset: %w", closeErr)
	}
	if err != nil {
		return nil, err
	}
	err = d.each(ctx, d.path, func(values []table.Value) error {
		var r rowHash
		for i, v := range values {
			d.want.cell(&r, d.columns[i].name, d.columns[i].isKey, v)
		}
		d.want.add(r)
		d.keys.add(values[0])
		return nil
	})
	d.rows = d.want.records
	return d, err
}

// each calls f with the values of every record of a CSV file with the dataset's columns, those whose key can be
// computed. Empty fields are Null.
func (d *dataset) each(ctx context.Context, path string, f func([]table.Value) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read dataset: %w", err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.ReuseRecord = true
	values, computed := make([]table.Value, len(d.columns)), d.computer()
	for n := 0; ; n++ {
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read dataset %s: %w", path, err)
		}
		if n == 0 {
			continue // the header
		}
		if n&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i, text := range record {
			if values[i], err = parseValue(d.columns[i].typ, text); err != nil {
				return fmt.Errorf("read dataset %s: record %d, column %s: %w", path, n, d.columns[i].name, err)
			}
		}
		if !computed.fill(values) {
			continue // a record that tsimport rejects
		}
		if err := f(values); err != nil {
			return err
		}
	}
}

func parseValue(t table.Type, text string) (v table.Value, err error) {
	if text == "" {
		return v, nil
	}
	v.Type = t
	switch t {
	case table.Integer:
		v.Int, err = strconv.ParseInt(text, 10, 64)
	case table.Double:
		v.Double, err = strconv.ParseFloat(text, 64)
	case table.Boolean:
		var yes bool
		if yes, err = strconv.ParseBool(text); yes {
			v.Int = 1
		}
	default:
		v.Bytes = []byte(text)
	}
	return v, err
}

// lookAt loads a user's file without limits, one request at a time, and takes what the table then holds as what every
// load must give: only tsimport knows the file's types and key expressions.
func lookAt(ctx context.Context, c *Config, dir string) (d *dataset, err error) {
	d = &dataset{path: c.Input.File, pk: c.Input.Keys, keys: newSample(c.Seed, maxSample), want: newContents()}
	e, err := startEngine(ctx, c.Binary, dir)
	if err != nil {
		return nil, err
	}
	defer e.close()
	l := loader{config: c, engine: e, data: d, dir: dir, flags: []string{"--create", "--concurrency", "1"}}
	if err := l.run(ctx); err != nil {
		return nil, fmt.Errorf("stat %s: %w", d.path, err)
	}
	d.rows = l.summary.Read
	sdk, err := client.New(ctx, e.Target, nil)
	if err != nil {
		return nil, err
	}
	described, err := (&client.Admin{Client: sdk, Context: ctx}).Describe(tableName)
	if err != nil {
		return nil, err
	}
	d.key = described.Key
	types := map[string]table.Type{}
	err = scan.Table(ctx, sdk, tableName, d.key, scan.Options{}, func(r *scan.Row) error {
		d.want.add(d.want.row(r))
		d.keys.add(client.ValueOf(r.PrimaryKey.PrimaryKeys[0].Value))
		for _, a := range r.Columns {
			types[a.ColumnName] = client.ValueOf(a.Value).Type
		}
		return nil
	})
	if again := d.rows - l.summary.Rejected - d.want.records; err == nil && again > 0 {
		d.notes = append(d.notes, fmt.Sprintf("%d rows have the key of another row: which of them stays is only certain with last-wins, and the SDK refuses requests that hold both", again))
	}
	if err == nil {
		d.noSDK = d.readHeader(types)
	}
	return d, err
}

// readHeader finds the columns as the SDK's loaders need them, or says why it cannot.
func (d *dataset) readHeader(types map[string]table.Type) (why string) {
	f, err := os.Open(d.path)
	if err != nil {
		return "it is not a regular file"
	}
	defer f.Close()
	header, err := csv.NewReader(f).Read()
	if err != nil {
		return "it is not plain CSV with a header"
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	for _, name := range header {
		col := column{name: name, typ: table.String}
		if t, ok := types[name]; ok {
			col.typ = t
		}
		for _, k := range d.key {
			if k.Name == name {
				col.typ, col.isKey = k.Type, true
			}
		}
		d.columns = append(d.columns, col)
	}
	if why := d.compileKey(); why != "" {
		d.columns = nil
		return why
	}
	for _, k := range d.key {
		if !slices.ContainsFunc(d.columns, func(c column) bool { return c.name == k.Name }) {
			d.columns = nil
			return fmt.Sprintf("its header has no column %s", k.Name)
		}
	}
	return ""
}
