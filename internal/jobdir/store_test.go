package jobdir

import (
	"bytes"
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
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/internal/objectstore/storetest"
)

// stores opens a store of each kind. A kind without a server gets nil.
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
					Credentials: func(context.Context) (string, string, string, error) { return "the-id", "the-secret", "", nil }}
			}
			check(t, conformance.Try(Open(t.Context(), place, o)).Must(t), server)
		})
	}
}

func TestStoresKeepContract(t *testing.T) {
	stores(t, func(t *testing.T, s Store, _ *storetest.Server) {
		ctx := t.Context()
		must(t, Probe(ctx, s))
		names, err := s.List(ctx, "")
		conformance.True(t, err == nil && len(names) == 0, "%q, %v", names, err)
		conformance.Is(t, conformance.ErrorOf(s.Get(ctx, "a/b")), fs.ErrNotExist, "error")
		conformance.Equal(t, Below(s, "a/b").String(), strings.TrimSuffix(s.String(), "/")+"/a/b", "string")
		must(t, errors.Join(s.PutAbsent(ctx, "a/b", []byte("1")), s.Put(ctx, "a/b", []byte("2")), s.Put(ctx, "a/empty", nil),
			s.Put(ctx, "c", []byte("3"))))
		conformance.Is(t, s.PutAbsent(ctx, "a/b", []byte("4")), ErrExists, "put absent")
		conformance.Equal(t, string(conformance.Try(s.Get(ctx, "a/b")).Must(t)), "2", "a/b")
		must(t, s.Put(ctx, "c", []byte("0123456789")))
		conformance.Equal(t, string(conformance.Try(s.GetRange(ctx, "c", 3, 4)).Must(t)), "3456", "a range of c")
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // it is asked for again
		body, err := s.GetRange(short, "c", 8, 4)
		conformance.True(t, err != nil, "past the end: %q", body)
		cancel()
		conformance.Is(t, conformance.ErrorOf(s.GetRange(ctx, "none", 0, 1)), fs.ErrNotExist, "a range of none")
		body, err = s.Get(ctx, "a/empty")
		conformance.True(t, err == nil && len(body) == 0, "%q, %v", body, err)
		conformance.Same(t, conformance.Try(s.List(ctx, "a/")).Must(t), []string{"a/b", "a/empty"}, "names in a/")
		conformance.Same(t, conformance.Try(Below(s, "a").List(ctx, "b")).Must(t), []string{"b"}, "names below a")
		must(t, errors.Join(s.Delete(ctx, "a/b"), s.Delete(ctx, "a/b")))
		conformance.Same(t, conformance.Try(s.List(ctx, "")).Must(t), []string{"a/empty", "c"}, "names")
	})
}

func TestOneOfManyPutsWins(t *testing.T) {
	stores(t, func(t *testing.T, s Store, _ *storetest.Server) {
		var won atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				switch err := s.PutAbsent(t.Context(), "one", []byte(Nonce())); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrExists):
					t.Error(err)
				}
			})
		}
		all.Wait()
		conformance.Equal(t, won.Load(), 1, "how many have won")
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
					storetest.Refuse(w, r, http.StatusNotImplemented, "NotImplemented", "This header is not implemented.")
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
			conformance.True(t, err != nil && strings.Contains(err.Error(), want) &&
				strings.HasPrefix(err.Error(), s.String()) && !strings.Contains(err.Error(), "\n"), "%q: %v", want, err)
		})
	}
}

func TestAFolderThatCannotBeWrittenToIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s := conformance.Try(Open(t.Context(), filepath.Join(file, "state"), Options{})).Must(t)
	conformance.InALine(t, Probe(t.Context(), s), file, "a file in the way")
}

func TestInvalidPlacesAreRefused(t *testing.T) {
	for place, want := range map[string]string{
		"ftp://x/y": "want a folder", "s3://": "not a bucket name", "oss://id:geheim@b/x": "not a bucket name",
	} {
		_, err := Open(t.Context(), place, Options{})
		conformance.True(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "geheim"),
			"%s: %v", place, err)
	}
}

func TestPutWithLostAnswerIsRecognised(t *testing.T) {
	// Fail each request in turn after it was applied.
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: newMemory(), rand: rand.New(rand.NewPCG(seed, 0)), lie: 30, fail: 10}
			err := (view{Store: f, patient: true}).PutAbsent(t.Context(), "x", []byte("mine"))
			body, getErr := f.Store.Get(t.Context(), "x")
			conformance.True(t, err != nil || getErr == nil && string(body) == "mine", "seed %d: %q, %v", seed, body, getErr)
			conformance.Equal(t, errors.Is(err, ErrExists), false, "seed %d: it takes its own object for another's", seed)
		})
	}
}

var must = conformance.Must

// into places files below a folder.
func into(dir string) func(folder, name string) (string, error) {
	return func(folder, name string) (string, error) {
		return filepath.Join(dir, folder, filepath.FromSlash(name)), nil
	}
}

func TestASuccessorFindsTheFilesOfTheNewestCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		r := rand.New(rand.NewPCG(1, 2))
		dir := t.TempDir()
		grows, whole := filepath.Join(dir, "grows"), filepath.Join(dir, "whole")
		var all []byte
		for epoch := range 3 {
			l := conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: time.Hour})).Must(t)
			m := NewMirror(s, l)
			if epoch > 0 {
				to := t.TempDir()
				conformance.MustEqual(t, conformance.Try(m.Restore(t.Context(), into(to))).Must(t), "run", "folder")
				for name, want := range map[string][]byte{"sub/grows": all, "whole": last(all, 10), "body": last(all, 3)} {
					if got, err := os.ReadFile(filepath.Join(to, "run", name)); err != nil || !bytes.Equal(got, want) {
						t.Errorf("epoch %d: %s has %d bytes, want %d, %v", l.Epoch, name, len(got), len(want), err)
					}
				}
			}
			for range 40 {
				all = append(all, make([]byte, r.IntN(5000))...)
				for i := range all {
					all[i] = byte(i * 31)
				}
				must(t, errors.Join(os.WriteFile(grows, all, 0o600), os.WriteFile(whole, last(all, 10), 0o600)))
				must(t, m.Save(t.Context(), "run", []MirrorFile{{Name: "sub/grows", Path: grows, Grows: true},
					{Name: "whole", Path: whole}, {Name: "body", Body: last(all, 3)},
					{Name: "gone", Path: filepath.Join(dir, "gone"), Grows: true}}))
			}
			names, _ := s.List(t.Context(), "")
			conformance.True(t, len(names) <= 40, "%d objects are kept: %q", len(names), names)
			if epoch == 1 {
				l.Abandon() // it is paused, or thought dead
				conformance.Refused(t, m.Save(t.Context(), "run", nil), "", "it keeps a checkpoint without the lease")
			} else if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func last(all []byte, n int) []byte { return append([]byte{}, all[max(0, len(all)-n):]...) }

func TestLateCheckpointIsNotNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		l, _ := Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		m := NewMirror(s, l)
		defer l.Abandon()
		for _, text := range []string{"1", "2", "3"} {
			must(t, m.Save(t.Context(), "run", []MirrorFile{{Name: "f", Body: []byte(text)}}))
		}
		// A put of the first checkpoint, whose answer was lost, is applied now.
		s.Objects["checkpoint.000000001.000000001"] = `{"version":1,"folder":"run"}`
		to := t.TempDir()
		must(t, conformance.ErrorOf(m.Restore(t.Context(), into(to))))
		got, _ := os.ReadFile(filepath.Join(to, "run", "f"))
		conformance.True(t, string(got) == "3", "%q", got)
		must(t, m.Finish(t.Context()))
		folder, err := m.Restore(t.Context(), into(to))
		conformance.True(t, folder == "" && err == nil, "%v %v", folder, err)
	})
}

// lateList lists an object only from a given moment on.
type lateList struct {
	*storetest.Memory
	name string
	from time.Time
}

func (s lateList) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := s.Memory.List(ctx, prefix)
	if time.Now().Before(s.from) {
		names = slices.DeleteFunc(names, func(n string) bool { return n == s.name })
	}
	return names, err
}

// The parts of the previous checkpoint are already deleted.
func TestTheNewestCheckpointIsAwaitedWhereAStoreListsItLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		first, _ := Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		must(t, NewMirror(s, first).Save(t.Context(), "run", []MirrorFile{{Name: "f", Body: []byte("1")}}))
		before := s.Objects["checkpoint.000000001.000000001"]
		second := release(t, s, clock, first)
		must(t, NewMirror(s, second).Save(t.Context(), "run", []MirrorFile{{Name: "f", Body: []byte("2")}}))
		third := release(t, s, clock, second)
		defer third.Abandon()
		s.Objects["checkpoint.000000001.000000001"] = before // listed still, as other stores that are late do
		late := lateList{s, "checkpoint.000000002.000000001", time.Now().Add(40 * time.Second)}
		to := t.TempDir()
		must(t, conformance.ErrorOf(NewMirror(late, third).Restore(t.Context(), into(to))))
		got, _ := os.ReadFile(filepath.Join(to, "run", "f"))
		conformance.True(t, string(got) == "2", "%q", got)
		// The same while another process takes over.
		late.from = time.Now().Add(time.Hour)
		third.mu.Lock()
		third.lost = true
		third.mu.Unlock()
		conformance.Is(t, conformance.ErrorOf(NewMirror(late, third).Restore(t.Context(), into(to))), ErrLost, "taken over")
	})
}

// release gives a lease back and takes it again.
func release(t *testing.T, s Store, clock func() time.Duration, l *Lease) *Lease {
	t.Helper()
	must(t, l.Release())
	return conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: time.Hour})).Must(t)
}

func TestDamagedOrNewerMirrorIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"version":2}`: "newer version", `{`: "damaged", `{"version":1,"folder":"../x"}`: "damaged",
		`{"version":1,"folder":"x","files":{"../y":[]}}`:                                       "damaged",
		`{"version":1,"folder":"x","files":{"y":[{"object":"data/1-1","bytes":3}]}}`:           "data/1-1 is damaged",
		`{"version":1,"folder":"x","files":{"y":[{"object":"data/1-1","bytes":1,"sum":1}]}}`:   "data/1-1 is damaged",
		`{"version":1,"folder":"x","files":{"y":[{"object":"data/none","bytes":1,"sum":1}]}} `: "start over with --fresh",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newMemory()
			s.Objects["checkpoint.000000001.000000001"], s.Objects["data/1-1"] = body, "x"
			l := conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: virtual()})).Must(t)
			defer l.Abandon()
			conformance.InALine(t, conformance.ErrorOf(NewMirror(s, l).Restore(t.Context(), into(t.TempDir()))), want,
				"%s", body)
		})
	}
}
