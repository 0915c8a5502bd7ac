package baseline

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/bench/null"
	"example.com/tsimport/internal/conformance"
)

// load makes a load of the file's text into a null server.
func load(t *testing.T, text string) (Load, *null.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	conformance.Must(t, err)
	t.Cleanup(func() { l.Close() })
	server := null.New(null.Options{})
	go server.Serve(l)
	file := filepath.Join(t.TempDir(), "rows.csv")
	conformance.Must(t, os.WriteFile(file, []byte(text), 0o644))
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	return Load{
		Client: tablestore.NewClientWithConfig("http://"+l.Addr().String(), "i", "a", "b", "", config), File: file, Table: "t",
		Columns: []Column{{"id", Integer}, {"price", Double}, {"name", String}}, Workers: 4,
	}, server
}

func rows(n int) string {
	return "id,price,name\n" + strings.Repeat("7,1.5,a name\n", n)
}

func TestEveryWayWritesEveryRowOnce(t *testing.T) {
	for name, way := range Ways {
		for _, n := range []int{0, 1, 199, 200, 201, 4001, 9000} {
			l, server := load(t, rows(n))
			written, err := way(l, context.Background())
			if err != nil || written != int64(n) || server.Rows.Load() != int64(n) {
				t.Errorf("%s: %d of %d rows written, %d arrived, %v", name, written, n, server.Rows.Load(), err)
			}
		}
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"no header": "", "other columns": "id,price\n1,2\n", "a word for a number": rows(300) + "x,1,a\n", "a word for a price": rows(3) + "1,x,a\n",
		"too few fields": rows(3) + "1,2\n",
	} {
		for way, f := range Ways {
			l, _ := load(t, text)
			if _, err := f(l, context.Background()); err == nil {
				t.Errorf("%s, %s: no error", way, name)
			}
		}
	}
	l, _ := load(t, "")
	l.File += ".missing"
	if _, err := l.Sequential(context.Background()); err == nil {
		t.Error("a missing file: no error")
	}
}

func TestAServiceThatRefusesIsAnError(t *testing.T) {
	for way, f := range Ways {
		l, _ := load(t, rows(500))
		config := tablestore.NewDefaultTableStoreConfig()
		config.RetryTimes = 0
		l.Client = tablestore.NewClientWithConfig("http://127.0.0.1:1", "i", "a", "b", "", config)
		if way == "timeline" {
			continue // it tries for five seconds
		}
		if written, err := f(l, context.Background()); err == nil || written != 0 {
			t.Errorf("%s: %d written, %v", way, written, err)
		}
	}
}

func TestALoadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for way, f := range Ways {
		l, _ := load(t, rows(10_000))
		if _, err := f(l, ctx); err == nil {
			t.Errorf("%s: no error", way)
		}
	}
}
