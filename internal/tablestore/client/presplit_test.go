package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/table"
)

// splitter is an Admin of a store in this process that can create tables with partitions.
func splitter(t *testing.T, through func(http.RoundTripper) http.RoundTripper) (*Admin, *server.Server) {
	t.Helper()
	s := engine(t, server.Options{})
	target := of(s)
	if through != nil {
		target.Transport = through(target.Transport)
	}
	return admin(t, target), s
}

// bounds are values of each type that a partition key can have, in order.
var splitBounds = map[table.Type][]table.Value{
	table.String:  {{Type: table.String, Bytes: []byte("b")}, {Type: table.String, Bytes: []byte("b\u00fc")}, {Type: table.String, Bytes: []byte("c")}},
	table.Integer: {{Type: table.Integer, Int: -5}, {Type: table.Integer, Int: 0}, {Type: table.Integer, Int: 1 << 60}},
	table.Binary:  {{Type: table.Binary, Bytes: []byte{0}}, {Type: table.Binary, Bytes: []byte{0xff, 1}}},
}

func TestATableIsMadeWithThePartitionsAskedFor(t *testing.T) {
	a, _ := splitter(t, nil)
	define := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 100000}
	for of, bounds := range splitBounds {
		name := "t" + of.String()
		key := []table.KeyColumn{{Name: "k", Type: of}, {Name: "n", Type: table.Integer, Auto: true}}
		if refused, err := a.CreateSplit(name, key, define, nil, bounds); refused != nil || err != nil {
			t.Fatalf("%v: refused %v, %v", of, refused, err)
		}
		got, err := a.Describe(name)
		must(t, err)
		if diff := cmp.Diff(key, got.Key); diff != "" || got.Definition != define {
			t.Errorf("%v: %+v, key %s", of, got.Definition, diff)
		}
		splits, err := a.Splits(name)
		if diff := cmp.Diff(bounds, splits); err != nil || diff != "" {
			t.Errorf("%v: %v (-want +got):\n%s", of, err, diff)
		}
		if _, err := a.CreateSplit(name, key, define, nil, bounds); !errors.Is(err, ErrTableExists) {
			t.Errorf("%v: made twice: %v", of, err)
		}
	}
}

func TestATableIsMadeWithoutPartitionsThatAreRefusedOrIgnored(t *testing.T) {
	bounds := splitBounds[table.String]
	key := []table.KeyColumn{{Name: "k", Type: table.String}}
	define := table.Definition{TimeToLive: -1, MaxVersions: 1}
	for answer, want := range map[string]string{sim.PreSplitRefused: "cannot be specified", sim.PreSplitIgnored: ""} {
		a, s := splitter(t, nil)
		must(t, s.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}))
		refused, err := a.CreateSplit("t", key, define, nil, bounds)
		if err != nil || (refused == nil) != (want == "") || refused != nil && !strings.Contains(refused.Error(), want) {
			t.Fatalf("%s: refused %v, %v", answer, refused, err)
		}
		if got, err := a.Splits("t"); err != nil || len(got) != 0 {
			t.Errorf("%s: bounds %v, %v", answer, got, err)
		}
	}
}

// cutting loses the answer to the first CreateTable.
type cutting struct {
	base http.RoundTripper
	done bool
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.base.RoundTrip(r)
	if err == nil && !c.done && strings.HasSuffix(r.URL.Path, "/CreateTable") {
		c.done = true
		res.Body.Close()
		return nil, errors.New("connection reset")
	}
	return res, err
}

func TestATableWithPartitionsWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	a, _ := splitter(t, func(base http.RoundTripper) http.RoundTripper { return &cutting{base: base} })
	a.Proven = true
	bounds := splitBounds[table.String]
	refused, err := a.CreateSplit("t", []table.KeyColumn{{Name: "k", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}, nil, bounds)
	if refused != nil || err != nil {
		t.Fatalf("refused %v, %v", refused, err)
	}
	if got, err := a.Splits("t"); err != nil || len(got) != len(bounds) {
		t.Errorf("bounds %v, %v", got, err)
	}
}

func TestATableMayHaveANameThatTheSDKFindsTooLong(t *testing.T) {
	a, _ := splitter(t, nil)
	key, define := []table.KeyColumn{{Name: "k", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}
	for _, n := range []int{maxSDKName, maxSDKName + 1, table.MaxNameBytes} {
		name := strings.Repeat("a", n)
		if err := a.Create(name, key, define); err != nil {
			t.Fatalf("%d characters: %v", n, err)
		}
		if got, err := a.Describe(name); err != nil || cmp.Diff(key, got.Key) != "" {
			t.Errorf("%d characters: %v, %v", n, got, err)
		}
		if err := a.Create(name, key, define); !errors.Is(err, ErrTableExists) {
			t.Errorf("%d characters: made twice: %v", n, err)
		}
	}
}
