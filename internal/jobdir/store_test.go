package jobdir

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tsimport/internal/objectstore"
	"tsimport/internal/objectstore/storetest"
)

// stores opens one of each kind. The servers are nil for those that have none.
func stores(t *testing.T, check func(t *testing.T, s Store, server *storetest.Server)) {
	t.Helper()
	for _, kind := range []string{"folder", "oss", "s3"} {
		t.Run(kind, func(t *testing.T) {
			server := storetest.New(t, "states")
			place := kind + "://states/of/loads"
			if kind == "folder" {
				server, place = nil, filepath.Join(t.TempDir(), "states")
			}
			var o Options
			if server != nil {
				o.OSS = objectstore.OSS{Endpoint: server.URL(), Region: "cn-test", PathStyle: true,
					Credentials: func(context.Context) (id, secret, token string, err error) { return "the-id", "the-secret", "", nil }}
			}
			s, err := Open(t.Context(), place, o)
			must(t, err)
			check(t, s, server)
		})
	}
}

func TestAllStoresDoWhatTheInterfaceSays(t *testing.T) {
	stores(t, func(t *testing.T, s Store, _ *storetest.Server) {
		ctx := t.Context()
		must(t, Probe(ctx, s))
		if names, err := s.List(ctx, ""); err != nil || len(names) != 0 {
			t.Errorf("%q, %v", names, err)
		}
		if _, err := s.Get(ctx, "a/b"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if got, want := Below(s, "a/b").String(), strings.TrimSuffix(s.String(), "/")+"/a/b"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		must(t, errors.Join(s.PutAbsent(ctx, "a/b", []byte("1")), s.Put(ctx, "a/b", []byte("2")), s.Put(ctx, "a/empty", nil), s.Put(ctx, "c", []byte("3"))))
		if err := s.PutAbsent(ctx, "a/b", []byte("4")); !errors.Is(err, ErrExists) {
			t.Errorf("%v", err)
		}
		if body, err := s.Get(ctx, "a/b"); err != nil || string(body) != "2" {
			t.Errorf("%q, %v", body, err)
		}
		must(t, s.Put(ctx, "c", []byte("0123456789")))
		if body, err := s.GetRange(ctx, "c", 3, 4); err != nil || string(body) != "3456" {
			t.Errorf("%q, %v", body, err)
		}
		if body, err := s.GetRange(ctx, "c", 8, 4); err == nil {
			t.Errorf("past the end: %q", body)
		}
		if _, err := s.GetRange(ctx, "none", 0, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if body, err := s.Get(ctx, "a/empty"); err != nil || len(body) != 0 {
			t.Errorf("%q, %v", body, err)
		}
		if names, err := s.List(ctx, "a/"); err != nil || !slices.Equal(names, []string{"a/b", "a/empty"}) {
			t.Errorf("%q, %v", names, err)
		}
		if names, err := Below(s, "a").List(ctx, "b"); err != nil || !slices.Equal(names, []string{"b"}) {
			t.Errorf("%q, %v", names, err)
		}
		must(t, errors.Join(s.Delete(ctx, "a/b"), s.Delete(ctx, "a/b")))
		if names, err := s.List(ctx, ""); err != nil || !slices.Equal(names, []string{"a/empty", "c"}) {
			t.Errorf("%q, %v", names, err)
		}
	})
}

func TestOfManyPutsOneWins(t *testing.T) {
	stores(t, func(t *testing.T, s Store, _ *storetest.Server) {
		var won atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				switch err := s.PutAbsent(t.Context(), "one", []byte(nonce())); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrExists):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d have won", won.Load())
		}
	})
}

func TestTheProbeRefusesByName(t *testing.T) {
	for want, change := range map[string]func(s *storetest.Server){
		"conditional puts have no effect there": func(s *storetest.Server) { s.Unconditional = true },
		"cannot be written to":                  func(s *storetest.Server) { s.ReadOnly = true },
		"is full":                               func(s *storetest.Server) { s.Full = true },
		"has no conditional puts": func(s *storetest.Server) {
			s.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				refuse := r.Header.Get("If-None-Match") != "" || r.Header.Get("X-Oss-Forbid-Overwrite") != ""
				if refuse {
					storetest.Refuse(w, r, http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented.")
				}
				return refuse
			}
		},
	} {
		stores(t, func(t *testing.T, s Store, server *storetest.Server) {
			if server == nil {
				return
			}
			server.Change(change)
			err := Probe(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), s.String()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", want, err)
			}
		})
	}
}

func TestAFolderThatCannotBeWrittenToIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s, err := Open(t.Context(), filepath.Join(file, "state"), Options{})
	must(t, err)
	if err := Probe(t.Context(), s); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestPlacesThatAreNoneAreRefused(t *testing.T) {
	for place, want := range map[string]string{
		"ftp://x/y": "want a folder", "s3://": "not a bucket name", "oss://id:geheim@b/x": "not a bucket name",
	} {
		if _, err := Open(t.Context(), place, Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

func TestAPutWhoseAnswerIsLostIsKnownAgain(t *testing.T) {
	// Fail each request in turn after it was carried out.
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: newMemory(), rand: rand.New(rand.NewPCG(seed, 0)), lie: 30, fail: 10}
			err := (retrying{f}).PutAbsent(t.Context(), "x", []byte("mine"))
			body, getErr := f.Store.Get(t.Context(), "x")
			if err == nil && (getErr != nil || string(body) != "mine") {
				t.Errorf("seed %d: %q, %v", seed, body, getErr)
			}
			if errors.Is(err, ErrExists) {
				t.Errorf("seed %d: it takes its own object for another's", seed)
			}
		})
	}
}
