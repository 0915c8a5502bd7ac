package tablescan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/source"
)

// Config says which table to read, what to read of it, and how.
type Config struct {
	Client *tablestore.TableStoreClient
	Table  *client.Table // the service's description of it
	Name   string        // name of the table for users; "" means its own

	From, To   []table.Value           // values of the first key columns: from inclusive, to exclusive; nil means no bound
	Columns    []string                // attributes to read, in addition to columns added by name; nil means all
	Filter     tablestore.ColumnFilter // applied by the service; may be nil
	FilterText string                  // Filter as the user wrote it
	FilterUses []string                // columns in Filter, which the service must read
	Where      *keyexpr.Where          // condition checked here; may be nil
	Versions   int                     // number of newest versions of each cell to read; 0 means all
	Since      int64                   // omit cells with lower timestamps, in ms since 1970; 0 means omit none

	scan.Manner
	RetryFor time.Duration // how long to retry a page; 0 means client.Patience
	Ranges   int           // least number of ranges, if the service offers so many; 0 means DefaultRanges
}

// DefaultRanges exceeds the ranges read at a time, so that ranges of different sizes end at about the same time.
const DefaultRanges = 64

// Origin reads a table as a series of ranges. It counts what its sources read.
type Origin struct {
	Clock *client.Clock // the service's clock; set before Divide; nil if the time is unknown

	cfg   Config
	units atomic.Int64
	left  atomic.Int64
	place source.Position // position of the opened division
	pages sync.Pool       // holds *page

	check struct {
		sync.Mutex
		last time.Time
	}
}

func New(c Config) *Origin {
	c.Name, c.Ranges = cmp.Or(c.Name, c.Table.Name), cmp.Or(c.Ranges, DefaultRanges)
	return &Origin{cfg: c}
}

// Units returns the number of read capacity units that this process has used.
func (o *Origin) Units() int64 { return o.units.Load() }

// Made returns the time at which the service created the table.
func (o *Origin) Made() time.Time { return time.UnixMicro(o.cfg.Table.Created).UTC() }

// LeftOut returns the number of rows that Config.Where has excluded in this process.
func (o *Origin) LeftOut() int64 { return o.left.Load() }

// division says how a table was cut into ranges. It is stored in the run folder.
type division struct {
	Table   string
	Created int64 // creation time of the table, as in client.Table
	Key     []keyColumn
	Bounds  [][]byte // lower bounds of all ranges but the first
	// Position is before everything that was read.
	Position source.Position `json:",omitzero"`
}

// Position returns a time before the reading began. Cells written later may be missing from the rows read.
func (o *Origin) Position() source.Position { return o.place }

// now returns the Position for the current time.
func (o *Origin) now(ctx context.Context) (p source.Position) {
	if o.Clock == nil {
		return p
	}
	o.admin(ctx).AskTime(o.Clock)
	earliest, _, known := o.Clock.Range(time.Now())
	if !known {
		p.ResumeFrom = &source.Resume{Unknown: "answers of the service have no date"}
	} else {
		p.ResumeFrom = source.ResumeAt(earliest.Add(-source.Lead))
	}
	return p
}

// keyColumn is a key column in the format of stored divisions, which must not change.
type keyColumn struct {
	Name string
	Type uint8
	Auto bool
}

func dividedKey(t *client.Table) (key []keyColumn) {
	for _, k := range t.Key {
		key = append(key, keyColumn{k.Name, uint8(k.Type), k.Auto})
	}
	return key
}

// Divide cuts the table where the service would, into ranges of similar size. It fails if the table was replaced.
func (o *Origin) Divide(ctx context.Context) ([]byte, error) {
	if err := o.same(ctx, true); err != nil {
		return nil, err
	}
	admin := o.admin(ctx)
	cuts, err := scan.Cuts(admin, o.cfg.Client, o.cfg.Table.Name, o.cfg.Ranges)
	if err != nil {
		return nil, err
	}
	t := o.cfg.Table
	d := division{Table: t.Name, Created: t.Created, Key: dividedKey(t), Position: o.now(ctx)}
	from, to := table.OrderingKey(o.cfg.From), table.OrderingKey(o.cfg.To)
	for _, c := range cuts {
		if at := table.OrderingKey(c); slices.Compare(at, from) > 0 && (o.cfg.To == nil || slices.Compare(at, to) < 0) {
			d.Bounds = append(d.Bounds, appendPlace(nil, c))
		}
	}
	return json.Marshal(d)
}

// Open opens the ranges of a division of the same table.
func (o *Origin) Open(ctx context.Context, kept []byte) (parts []source.Source, err error) {
	var d division
	if err := json.Unmarshal(kept, &d); err != nil {
		return nil, fmt.Errorf("open table %s: its saved ranges cannot be decoded: %w", o.cfg.Name, err)
	}
	t := o.cfg.Table
	switch {
	case d.Table != t.Name:
		return nil, fmt.Errorf("open table %s: the run read table %s", o.cfg.Name, d.Table)
	case d.Created != 0 && t.Created != 0 && d.Created != t.Created:
		return nil, fmt.Errorf("table %s was dropped and created again since the run began: the rows that the run has read "+
			"belong to another table; "+source.StartOver, o.cfg.Name)
	case !slices.Equal(d.Key, dividedKey(t)):
		return nil, fmt.Errorf("the primary key of table %s has changed since the run began; "+source.StartOver, o.cfg.Name)
	}
	o.place = d.Position
	from := o.cfg.From
	for i := range len(d.Bounds) + 1 {
		p := &part{of: o, ctx: ctx, name: o.cfg.Name, from: from, to: o.cfg.To}
		if len(d.Bounds) > 0 {
			p.name = fmt.Sprintf("%s[%d]", o.cfg.Name, i+1)
		}
		if i < len(d.Bounds) {
			if p.to, err = placeValues(d.Bounds[i]); err != nil {
				return nil, fmt.Errorf("open table %s: %w", o.cfg.Name, err)
			}
			from = p.to
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func (o *Origin) admin(ctx context.Context) *client.Admin {
	return &client.Admin{Client: o.cfg.Client, Context: ctx, RetryFor: o.cfg.RetryFor, Proven: true}
}

// checkEvery is the time between checks that the table is the same, which pages do not show.
const checkEvery = 10 * time.Second

// same returns an error if the table is not the one that reading began with. Unless certain is set, it checks rarely.
func (o *Origin) same(ctx context.Context, certain bool) error {
	o.check.Lock()
	defer o.check.Unlock()
	if now := time.Now(); !certain && now.Sub(o.check.last) < checkEvery {
		return nil
	}
	if err := o.admin(ctx).Same(o.cfg.Table); err != nil {
		return err
	}
	o.check.last = time.Now()
	return nil
}

// suspectFor is the time for which a failed reading tries to find out whether its table was replaced.
const suspectFor = 2 * time.Second

// why returns the error for a replaced table if that is why a reading has failed with err; otherwise it returns err.
func (o *Origin) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	admin := o.admin(ctx)
	admin.RetryFor = suspectFor
	if replaced := new(client.ReplacedError); errors.As(admin.Same(o.cfg.Table), &replaced) {
		return replaced
	}
	return err
}

// Options returns the options for scanning a range, including the added columns.
func (o *Origin) Options(from, to []table.Value, added []string) scan.Options {
	s := scan.Options{
		From: from, To: to, Versions: cmp.Or(o.cfg.Versions, AllVersions), RetryFor: o.cfg.RetryFor, Units: &o.units,
		Since: o.cfg.Since, Filter: o.cfg.Filter, Manner: o.cfg.Manner,
	}
	s.Columns = o.cfg.ToRead(added)
	return s
}

// ToRead returns the attributes to request: those wanted, added and used in conditions. Nil means all.
func (c *Config) ToRead(added []string) []string {
	if c.Columns == nil {
		return nil
	}
	uses := slices.Concat(c.Columns, added, c.FilterUses)
	if c.Where != nil {
		uses = append(uses, c.Where.Columns()...)
	}
	read := []string{}
	for _, name := range uses {
		isKey := slices.ContainsFunc(c.Table.Key, func(k table.KeyColumn) bool { return k.Name == name })
		if !isKey && !slices.Contains(read, name) {
			read = append(read, name)
		}
	}
	if len(read) > maxColumnsToGet {
		return nil
	}
	return read
}

// AllVersions is more than any table's limit, so that no version is lost if that limit changes.
const AllVersions = 1<<31 - 1

// maxColumnsToGet is the largest number of columns that a request can name in addition to a key column.
const maxColumnsToGet = 1023
