package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/ratelimit"
)

// Patience limits how long table operations are retried while the service is busy. maxAmbiguous limits the attempts if
// no response makes sense, as with an endpoint that is not Tablestore.
const (
	Patience     = 2 * time.Minute
	maxAmbiguous = 5
)

// ErrTableExists means that the name of a table is taken.
var ErrTableExists = errors.New("a table or an index of that name exists (OTSObjectAlreadyExist)")

// ErrNoTable means that a table does not exist.
var ErrNoTable = errors.New("no such table")

// Table is the service's description of a table.
type Table struct {
	Name    string
	Key     []table.KeyColumn
	Defined map[string]table.Type // predefined attribute columns
	// Created is the creation time by the service's clock, in microseconds since 1970; 0 if unknown.
	Created int64
	Indexes []string // names of secondary indexes
	// IndexesAre holds the definitions of Indexes.
	IndexesAre []table.Index
	table.Definition
}

// Admin operates on tables. It retries while the service is busy or the network to a proven endpoint fails.
type Admin struct {
	Client *tablestore.TableStoreClient
	// Context ends waits between attempts. Requests end with the client's own context.
	Context context.Context
	// RetryFor limits how long an operation is retried; 0 means Patience.
	RetryFor time.Duration
	// Proven means that the endpoint is known to be Tablestore, so that a broken connection is a temporary fault.
	Proven bool

	answered atomic.Bool
	// ReachFor limits how long an endpoint that never responded is retried. 0 means not at all: it is probably wrong.
	ReachFor time.Duration
	// Connection sends requests that the SDK's client cannot make. If it is nil, they fail.
	Connection *Connection
	// OnWait, if not nil, is called once per operation without a response, with the reason and the limit of the retries.
	OnWait func(why string, most time.Duration)
}

// Describe returns a table, or ErrNoTable.
func (a *Admin) Describe(name string) (*Table, error) {
	var res *tablestore.DescribeTableResponse
	var raw []byte
	err := a.try(func() (err error) {
		res, raw, err = a.describe(name)
		return err
	})
	if err != nil {
		return nil, a.wrap("describe", name, err)
	}
	t := &Table{Name: name, Defined: map[string]table.Type{}}
	if t.Created, err = decodeCreated(raw); err != nil {
		return nil, fmt.Errorf("describe table %s: read its creation time: %w", name, err)
	}
	for _, k := range res.TableMeta.SchemaEntry {
		auto := k.Option != nil && *k.Option == tablestore.AUTO_INCREMENT
		t.Key = append(t.Key, table.KeyColumn{Name: *k.Name, Type: keyTypes[*k.Type], Auto: auto})
	}
	for _, d := range res.TableMeta.DefinedColumns {
		t.Defined[d.Name] = definedTypes[d.ColumnType]
	}
	t.TimeToLive, t.MaxVersions = res.TableOption.TimeToAlive, res.TableOption.MaxVersion
	t.MaxDeviation = res.TableOption.DeviationCellVersionInSec
	t.NoUpdates = res.TableOption.AllowUpdate != nil && !*res.TableOption.AllowUpdate
	for _, i := range res.IndexMetas {
		t.Indexes = append(t.Indexes, i.IndexName)
		t.IndexesAre = append(t.IndexesAre, table.Index{Name: i.IndexName, Local: i.IndexType == tablestore.IT_LOCAL_INDEX,
			Key: i.Primarykey, Columns: i.DefinedColumns})
	}
	t.ReservedRead, t.ReservedWrite = res.ReservedThroughput.Readcap, res.ReservedThroughput.Writecap
	return t, nil
}

var keyTypes = map[tablestore.PrimaryKeyType]table.Type{
	tablestore.PrimaryKeyType_INTEGER: table.Integer,
	tablestore.PrimaryKeyType_STRING:  table.String,
	tablestore.PrimaryKeyType_BINARY:  table.Binary,
}

var definedTypes = map[tablestore.DefinedColumnType]table.Type{
	tablestore.DefinedColumn_INTEGER: table.Integer,
	tablestore.DefinedColumn_DOUBLE:  table.Double,
	tablestore.DefinedColumn_BOOLEAN: table.Boolean,
	tablestore.DefinedColumn_STRING:  table.String,
	tablestore.DefinedColumn_BINARY:  table.Binary,
}

func sdkType[T comparable](types map[T]table.Type, t table.Type) (name T) {
	for n, of := range types {
		if of == t {
			name = n
		}
	}
	return name
}

// Create creates a table. The error is ErrTableExists if the name is taken, unless the table is as requested and may
// have been created by an attempt of this call whose response was lost.
func (a *Admin) Create(name string, key []table.KeyColumn, d table.Definition) error {
	return a.CreateDefined(name, key, d, nil)
}

// CreateDefined is like Create for a table with predefined attribute columns.
func (a *Admin) CreateDefined(name string, key []table.KeyColumn, d table.Definition,
	defined map[string]table.Type) error {
	meta := &tablestore.TableMeta{TableName: name}
	for _, column := range slices.Sorted(maps.Keys(defined)) {
		meta.AddDefinedColumn(column, sdkType(definedTypes, defined[column]))
	}
	for _, k := range key {
		if t := sdkType(keyTypes, k.Type); k.Auto {
			meta.AddPrimaryKeyColumnOption(k.Name, t, tablestore.AUTO_INCREMENT)
		} else {
			meta.AddPrimaryKeyColumn(k.Name, t)
		}
	}
	req := &tablestore.CreateTableRequest{
		TableMeta: meta,
		TableOption: &tablestore.TableOption{TimeToAlive: d.TimeToLive, MaxVersion: d.MaxVersions,
			DeviationCellVersionInSec: d.MaxDeviation},
		ReservedThroughput: &tablestore.ReservedThroughput{Readcap: d.ReservedRead, Writecap: d.ReservedWrite},
	}
	if d.NoUpdates {
		req.TableOption.AllowUpdate = new(false)
	}
	if len(name) > maxSDKName {
		return a.wrap("create", name, a.createItself(name, key, d, defined, nil))
	}
	return a.wrap("create", name, a.create(name, key, d, func() error {
		_, err := a.Client.CreateTable(req)
		return err
	}))
}

// maxSDKName is the longest table name that the SDK's client accepts; the service accepts longer ones.
const maxSDKName = 100

// create calls send, with retries. It succeeds if the table is as requested and may be from an earlier attempt.
func (a *Admin) create(name string, key []table.KeyColumn, d table.Definition, send func() error) error {
	unsure := false
	return a.try(func() error {
		err := send()
		if unsure && codeOf(err) == "OTSObjectAlreadyExist" {
			return a.isAsAsked(name, key, d, err)
		}
		unsure = unsure || err != nil && Classify(err).Open()
		return err
	})
}

// isAsAsked returns nil if the table has the requested key and options, and otherwise the error exists.
func (a *Admin) isAsAsked(name string, key []table.KeyColumn, d table.Definition, exists error) error {
	t, err := a.Opened(name)
	if err != nil {
		return err
	}
	for _, of := range []*table.Definition{&d, &t.Definition} {
		of.MaxDeviation = cmp.Or(of.MaxDeviation, DefaultDeviation)
	}
	if !slices.Equal(t.Key, key) || t.Definition != d {
		return exists
	}
	return nil
}

// DefaultDeviation is the service's default maximum deviation of timestamps, in seconds.
const DefaultDeviation = 86400

// OpensWithin is how long after CreateTable the service may report that the table does not exist.
const OpensWithin = 90 * time.Second

// Opened waits until the service knows a table that this process has just created, and returns it.
func (a *Admin) Opened(name string) (*Table, error) {
	backoff := ratelimit.Backoff{Base: 100 * time.Millisecond, Max: 5 * time.Second}
	patience := ratelimit.Patience{For: OpensWithin}
	for attempt := 1; ; attempt++ {
		t, err := a.Describe(name)
		if !errors.Is(err, ErrNoTable) {
			return t, err
		}
		if patience.Over(time.Now()) {
			return nil, fmt.Errorf("describe table %s: the service created it, but after %v still says that it does not "+
				"exist: %w", name, OpensWithin, err)
		}
		if err := ratelimit.Wait(a.Context, backoff.After(attempt)); err != nil {
			return nil, err
		}
	}
}

// Drop deletes a table and its rows, or returns ErrNoTable.
func (a *Admin) Drop(name string) error {
	unsure := false
	err := a.try(func() error {
		_, err := a.Client.DeleteTable(&tablestore.DeleteTableRequest{TableName: name})
		if unsure && codeOf(err) == "OTSObjectNotExist" {
			return nil
		}
		unsure = unsure || err != nil && Classify(err).Open()
		return err
	})
	return a.wrap("drop", name, err)
}

// List returns the names of the instance's tables.
func (a *Admin) List() ([]string, error) {
	var res *tablestore.ListTableResponse
	err := a.try(func() (err error) {
		res, err = a.Client.ListTable()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", &Error{err})
	}
	return res.TableNames, nil
}

// try repeats a table operation while a retry can help. The operation must be safe to repeat.
func (a *Admin) try(op func() error) error {
	return a.tryFor(cmp.Or(a.RetryFor, Patience), op)
}

func (a *Admin) tryFor(most time.Duration, op func() error) error {
	const base = 100 * time.Millisecond // patience counts at most a quarter of its time between two attempts
	backoff := ratelimit.Backoff{Base: base, Max: max(base, min(5*time.Second, most/4))}
	patience := ratelimit.Patience{For: most}
	reach, told := ratelimit.Patience{For: cmp.Or(a.ReachFor, patience.For)}, false
	for attempt := 1; ; attempt++ {
		err := answered(op)
		if err == nil {
			a.answered.Store(true)
			return nil
		}
		class := Classify(err)
		if isAnswer(err) && !class.Open() || damaged(err) {
			a.answered.Store(true)
		}
		switch proven := a.Proven || a.answered.Load(); {
		case !class.Passes():
			return err
		case proven:
		case Unsettled(err):
			if attempt >= maxAmbiguous {
				return err
			}
		case !isAnswer(err) || unserved(err):
			if !a.mayBeDown(err, attempt) || reach.Over(time.Now()) {
				return err
			}
			if a.OnWait != nil && !told {
				a.OnWait(Describe(err), reach.For)
				told = true
			}
		case class.Open() && !SlowDown(err) && attempt >= maxAmbiguous:
			return err
		}
		if patience.Over(time.Now()) {
			return err
		}
		if err := ratelimit.Wait(a.Context, backoff.After(attempt)); err != nil {
			return err
		}
	}
}

// mayBeDown reports whether an endpoint that never responded may be down rather than wrong.
func (a *Admin) mayBeDown(err error, attempt int) bool {
	if untrusted(err) || WrongScheme(err) {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return a.ReachFor > 0 && !dns.IsNotFound && (dns.IsTemporary || dns.IsTimeout)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return a.ReachFor > 0
	}
	var timeout net.Error
	// Not every time-out is a net.Error.
	cut := unserved(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	return (cut || errors.As(err, &timeout) && timeout.Timeout()) && (a.ReachFor > 0 || attempt < maxAmbiguous)
}

// unserved reports whether a proxy responded with its own page because it cannot reach the service.
func unserved(err error) bool {
	ots, ok := errors.AsType[*tablestore.OtsError](err)
	return ok && isPage(ots) && slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout}, ots.HttpStatusCode)
}

// answered turns a panic into an error, because the SDK dereferences fields that a broken response lacks.
func answered(op func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the endpoint does not answer as Tablestore does; check --endpoint")
		}
	}()
	return op()
}

func (a *Admin) wrap(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	switch codeOf(err) {
	case "OTSObjectNotExist":
		return fmt.Errorf("%s table %s: %w", verb, name, ErrNoTable)
	case "OTSObjectAlreadyExist":
		return fmt.Errorf("%s table %s: %w", verb, name, ErrTableExists)
	}
	return fmt.Errorf("%s table %s: %w", verb, name, &Error{err})
}

// IsNoTable reports whether the service said that the table does not exist.
func IsNoTable(err error) bool {
	return errors.Is(err, ErrNoTable) || codeOf(err) == "OTSObjectNotExist"
}

// codeOf returns the error code of the service's response, or "" if there is none.
func codeOf(err error) string {
	if ots, ok := errors.AsType[*tablestore.OtsError](err); ok {
		return ots.Code
	}
	return ""
}

// Error wraps an error of the SDK and describes it in one line.
type Error struct{ Cause error }

func (e *Error) Error() string { return Describe(e.Cause) }
func (e *Error) Unwrap() error { return e.Cause }
