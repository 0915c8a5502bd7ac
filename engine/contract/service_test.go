package contract

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
)

// service is the target of a test: an engine in this process, or the real instance set in the environment.
type service struct {
	*tablestore.TableStoreClient
	endpoint, instance, keyID, secret string
	real                              bool
	transport                         http.RoundTripper // for requests made by hand; nil means the default
}

// openReal returns the instance set by TABLESTORE_TEST_…, or nil if none is set. Its client does not retry.
func openReal() *service {
	s := &service{
		endpoint:  strings.TrimSuffix(os.Getenv("TABLESTORE_TEST_ENDPOINT"), "/"),
		instance:  os.Getenv("TABLESTORE_TEST_INSTANCE"),
		keyID:     os.Getenv("TABLESTORE_TEST_ACCESS_KEY_ID"),
		secret:    os.Getenv("TABLESTORE_TEST_ACCESS_KEY_SECRET"),
		real:      true,
		transport: paced,
	}
	if s.endpoint == "" || s.instance == "" || s.keyID == "" || s.secret == "" {
		return nil
	}
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes, config.Transport = 0, paced
	s.TableStoreClient = tablestore.NewClientWithConfig(s.endpoint, s.instance, s.keyID, s.secret, "", config)
	return s
}

// openService returns the real instance if there is one, or an engine for the test. Its client does not retry.
func openService(t testing.TB) *service {
	t.Helper()
	if s := openReal(); s != nil {
		return s
	}
	e := enginetest.Start(t)
	return &service{
		TableStoreClient: newClient(e.URL, e.Instance, e.AccessKeyID, e.AccessKeySecret),
		endpoint:         e.URL, instance: e.Instance, keyID: e.AccessKeyID, secret: e.AccessKeySecret,
	}
}

// serviceWith returns an engine with options, never a real instance. Its store is in o.FS, or in memory if that is nil.
func serviceWith(t testing.TB, o server.Options) *service {
	t.Helper()
	s, _ := serve(t, o)
	return s
}

func serve(t testing.TB, o server.Options) (s *service, end func()) {
	t.Helper()
	o.InMemory, o.Log = o.FS == nil, log.New(io.Discard, "", 0)
	e := conformance.Try(server.Open("store", o)).Must(t)
	h := httptest.NewServer(e)
	end = sync.OnceFunc(func() {
		h.Close()
		conformance.Equal(t, e.Close(), nil, "stop the engine")
	})
	t.Cleanup(end)
	s = &service{endpoint: h.URL, instance: server.DefaultInstance, keyID: server.DefaultAccessKeyID,
		secret: server.DefaultAccessKeySecret}
	s.TableStoreClient = newClient(s.endpoint, s.instance, s.keyID, s.secret)
	return s, end
}

type restartable struct {
	*service
	fs   *vfs.MemFS
	stop func()
}

func openStore(t testing.TB) *restartable {
	t.Helper()
	r := &restartable{service: &service{}, fs: vfs.NewCrashableMem()}
	r.start(t)
	return r
}

// start opens the store. From then on, the service and its tables use the new engine.
func (r *restartable) start(t testing.TB) {
	t.Helper()
	var s *service
	s, r.stop = serve(t, server.Options{FS: r.fs})
	*r.service = *s
}

func (r *restartable) losePower() {
	kept := r.fs.CrashClone(vfs.CrashCloneCfg{})
	r.stop()
	r.fs = kept
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := dropTables(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func dropTables() error {
	s := openReal()
	if s == nil {
		return nil
	}
	list, err := s.ListTable()
	if err != nil {
		return fmt.Errorf("look for tables that tests left behind: %w", err)
	}
	for _, name := range list.TableNames {
		if !strings.HasPrefix(name, tablePrefix+"_") {
			continue
		}
		if _, err := s.DeleteTable(&tablestore.DeleteTableRequest{TableName: name}); err != nil &&
			refusalOf(err).code != "OTSObjectNotExist" {
			return fmt.Errorf("table %s is left behind: %w", name, err)
		}
	}
	return nil
}

// paced keeps the tests below a real instance's limit of ten table operations a second.
var paced = &pacer{next: time.NewTicker(125 * time.Millisecond)}

type pacer struct{ next *time.Ticker }

func (p *pacer) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "Table") {
		<-p.next.C
	}
	return http.DefaultTransport.RoundTrip(r)
}

func newClient(endpoint, instance, keyID, secret string) *tablestore.TableStoreClient {
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	return tablestore.NewClientWithConfig(endpoint, instance, keyID, secret, "", config)
}

type table struct {
	*service
	name string
	keys []tablestore.PrimaryKeySchema
}

// tableOptions are options of newTable. Zero means one version, no time to live, and the key pk1 STRING, pk2 INTEGER.
type tableOptions struct {
	versions  int
	ttl       int   // seconds
	deviation int64 // seconds
	keys      []tablestore.PrimaryKeyType
	numbered  bool // the last key column is AUTO_INCREMENT
	defined   []tablestore.DefinedColumnSchema
	indexes   []*tablestore.IndexMeta
	localTxn  *bool // whether the table has local transactions
	more      func(*tablestore.TableOption)
}

var stringInteger = []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_STRING, tablestore.PrimaryKeyType_INTEGER}

// tableNumber and tablePrefix make table names that no other run on the same instance uses.
var (
	tableNumber atomic.Int64
	tablePrefix = fmt.Sprintf("tsimport_contract_%d_%d", time.Now().UnixMilli(), os.Getpid())
)

func newTableName() string { return fmt.Sprintf("%s_%d", tablePrefix, tableNumber.Add(1)) }

// newTable creates a table that accepts writes, and deletes it at the end of the test.
func (s *service) newTable(t testing.TB, o tableOptions) *table {
	t.Helper()
	tb := &table{service: s, name: newTableName()}
	if o.keys == nil {
		o.keys = stringInteger
	}
	meta := &tablestore.TableMeta{TableName: tb.name}
	for i, typ := range o.keys {
		name := fmt.Sprintf("pk%d", i+1)
		meta.AddPrimaryKeyColumn(name, typ)
		tb.keys = append(tb.keys, tablestore.PrimaryKeySchema{Name: &name, Type: &typ})
	}
	if o.numbered {
		option := tablestore.AUTO_INCREMENT
		meta.SchemaEntry[len(o.keys)-1].Option = &option
	}
	for _, d := range o.defined {
		meta.AddDefinedColumn(d.Name, d.ColumnType)
	}
	option := &tablestore.TableOption{TimeToAlive: -1, MaxVersion: max(1, o.versions),
		DeviationCellVersionInSec: o.deviation}
	if o.ttl != 0 {
		option.TimeToAlive = o.ttl
	}
	if o.more != nil {
		o.more(option)
	}
	must(t, conformance.ErrorOf(s.CreateTable(&tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: option, ReservedThroughput: &tablestore.ReservedThroughput{}, IndexMetas: o.indexes,
		EnableLocalTxn: o.localTxn,
	})))
	s.dropLater(t, tb.name)
	s.awaitTable(t, tb)
	return tb
}

func (s *service) create(meta *tablestore.TableMeta, option *tablestore.TableOption,
	indexes ...*tablestore.IndexMeta) error {
	_, err := s.CreateTable(&tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: option, ReservedThroughput: &tablestore.ReservedThroughput{}, IndexMetas: indexes,
	})
	return err
}

// dropLater deletes a real instance's table at the end of the test. An engine's table vanishes with its store.
func (s *service) dropLater(t testing.TB, name string) {
	if !s.real {
		return
	}
	t.Cleanup(func() {
		_, err := s.DeleteTable(&tablestore.DeleteTableRequest{TableName: name})
		conformance.True(t, err == nil || refusalOf(err).code == "OTSObjectNotExist", "table %s is left: %v", name, err)
	})
}

// awaitTable returns when the table accepts writes. In the real service, that takes up to a minute.
func (s *service) awaitTable(t testing.TB, tb *table) {
	t.Helper()
	key := make([]any, len(tb.keys))
	for i, k := range tb.keys {
		switch *k.Type {
		case tablestore.PrimaryKeyType_INTEGER:
			key[i] = int64(0)
		case tablestore.PrimaryKeyType_STRING:
			key[i] = ""
		default:
			key[i] = []byte{}
		}
	}
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		err := tb.do(tb.delete(tb.key(key...)))
		code := refusalOf(err).code
		if err == nil {
			return
		}
		if !s.real || code != "OTSTableNotReady" && code != "OTSPartitionUnavailable" && code != "OTSObjectNotExist" {
			t.Fatalf("table %s takes no writes: %v", tb.name, err)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("table %s is not ready: %v", tb.name, err)
		}
	}
}

// refusal is an error of the service. In an expectation, an empty message means any message.
type refusal struct {
	status        int
	code, message string
}

var accepted = refusal{}

func invalid(message string) refusal   { return refusal{400, "OTSParameterInvalid", message} }
func invalidPK(message string) refusal { return refusal{400, "OTSInvalidPK", message} }

var (
	conditionFailed = refusal{403, "OTSConditionCheckFail", "Condition check failed."}
	noSuchTable     = refusal{404, "OTSObjectNotExist", "Requested table does not exist."}
	alreadyExists   = refusal{409, "OTSObjectAlreadyExist", "Requested table already exists."}
)

// refusalOf returns the service's error. For any other error, it returns a refusal whose code is the error's text.
func refusalOf(err error) refusal {
	if err == nil {
		return accepted
	} else if e, ok := errors.AsType[*tablestore.OtsError](err); ok {
		return refusal{e.HttpStatusCode, e.Code, e.Message}
	}
	return refusal{code: err.Error()}
}

func (want refusal) matches(got refusal) bool {
	if want.message == "" && want.code != "" {
		got.message = ""
	}
	if begin, more := strings.CutSuffix(want.message, "…"); more && strings.HasPrefix(got.message, begin) {
		got.message = want.message
	}
	return got == want
}

func check(t testing.TB, err error, want refusal) {
	t.Helper()
	got := refusalOf(err)
	conformance.True(t, want.matches(got), "got  %+v\nwant %+v", got, want)
}

// checkRow fails the test unless a row of a batch has the wanted refusal. It ignores the status.
func checkRow(t testing.TB, row tablestore.RowResult, want refusal) {
	t.Helper()
	want.status = 0
	if got := (refusal{0, row.Error.Code, row.Error.Message}); row.IsSucceed != (want == accepted) || !want.matches(got) {
		t.Errorf("row %d: got %+v, want %+v", row.Index, got, want)
	}
}

func checkRows(t testing.TB, rows []tablestore.RowResult, want refusal) {
	t.Helper()
	for _, row := range rows {
		checkRow(t, row, want)
	}
}

var must = conformance.Must

func diff(t testing.TB, got, want any) {
	t.Helper()
	d := cmp.Diff(want, got)
	conformance.True(t, d == "" || reflect.DeepEqual(want, got), "(-want +got)\n%s", d)
}

func describe(t *testing.T, s *service, name string) *tablestore.DescribeTableResponse {
	t.Helper()
	d := conformance.Try(s.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})).Must(t)
	return d
}

func newOptions(ttl, versions int) *tablestore.TableOption {
	return &tablestore.TableOption{TimeToAlive: ttl, MaxVersion: versions}
}

// protocol returns the numbers in docs/internals/protocol*.md: sections such as "3.8", rules such as "3.8.2".
var protocol = sync.OnceValues(func() (map[string]bool, error) {
	pages, err := filepath.Glob("../../docs/internals/protocol*.md")
	if err != nil {
		return nil, err
	}
	numbers := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:### |- \*\*)(\d+\.\d+(?:\.\d+)?)`).FindAllSubmatch(text, -1) {
			if numbers[string(m[1])] {
				return nil, fmt.Errorf("%s: %s appears twice", page, m[1])
			}
			numbers[string(m[1])] = true
		}
	}
	return numbers, nil
})

// spec names the rules of docs/internals/protocol*.md that a test proves. An unknown number fails the test.
func spec(t testing.TB, rules ...string) {
	t.Helper()
	numbers := conformance.Try(protocol()).Must(t)
	for _, r := range rules {
		conformance.Equal(t, numbers[r], true, "docs/internals/protocol*.md have no rule %s", r)
	}
}

func proving(t *testing.T, rules ...string) *service {
	t.Helper()
	spec(t, rules...)
	t.Parallel()
	return openService(t)
}

// elsewhere maps rules that need a process, a clock or a simulation to the file and the test that prove them.
var elsewhere = map[string][2]string{
	"1.1.6": {"../../e2e/serve_test.go", "TestStoreHasOneServer"},
	"5.1.3": {"../server/simulate_test.go", "TestChildrenServeAfterSplitPause"},
	"6.1.1": {"../wire/proto_test.go", "TestAllCodesHaveStatusAndMessage"},
	"6.1.2": {"../server/simulate_test.go", "TestWholeRequestFaults"},
}

var ruleNumber = regexp.MustCompile(`^[1-6]\.\d+\.\d+$`)

// TestAllRulesHaveTests checks that tests name every rule of sections 1 to 6 that is not proven elsewhere.
func TestAllRulesHaveTests(t *testing.T) {
	numbers := conformance.Try(protocol()).Must(t)
	named := rulesNamed(t)
	for r := range numbers {
		conformance.True(t, !ruleNumber.MatchString(r) || named[r] || elsewhere[r][0] != "", "no case names rule %s", r)
	}
	for r, where := range elsewhere {
		text := conformance.Try(os.ReadFile(where[0])).Must(t)
		conformance.True(t, strings.Contains(string(text), "func "+where[1]+"(") && numbers[r],
			"rule %s: %s has no %s", r, where[0], where[1])
	}
}

// rulesNamed returns the rules that the suite's tests name. A test that names neither rule nor section is an error.
func rulesNamed(t *testing.T) map[string]bool {
	number := regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)
	named := map[string]bool{}
	files := conformance.Try(filepath.Glob("*_test.go")).Must(t)
	for _, name := range files {
		file := conformance.Try(parser.ParseFile(token.NewFileSet(), name, nil, 0)).Must(t)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name == "TestAllRulesHaveTests" || f.Name.Name == "TestMain" || name == "assumptions_test.go" {
				continue
			}
			some := false
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "spec" || id.Name == "proving") {
						for _, a := range call.Args {
							lit, ok := a.(*ast.BasicLit)
							if !ok {
								continue
							}
							if s, err := strconv.Unquote(lit.Value); err == nil && number.MatchString(s) {
								named[s], some = true, true
							}
						}
					}
				}
				return true
			})
			conformance.True(t, !strings.HasPrefix(f.Name.Name, "Test") || some, "%s: %s: no spec or proving", name, f.Name.Name)
		}
	}
	return named
}
