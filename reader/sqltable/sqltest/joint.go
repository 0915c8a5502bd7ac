package sqltest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// Joined opens the parts of tables that are read in one moment, by two sessions.
func Joined(t *testing.T, whole bool, tables ...sqltable.Server) (origins []*sqltable.Origin, open func(n int, ctx context.Context) ([]source.Source, error)) {
	t.Helper()
	all := new(sqltable.Moments)
	for _, s := range tables {
		all.Add(sqltable.Config{Server: s, Sessions: 2}, false)
	}
	t.Cleanup(all.Close)
	for _, s := range tables {
		origins = append(origins, sqltable.New(sqltable.Config{Server: s, Moment: all.Of(s), Whole: whole, RetryFor: 10 * time.Second}))
	}
	return origins, func(n int, ctx context.Context) ([]source.Source, error) {
		division, err := origins[n].Divide(ctx)
		if err != nil {
			return nil, err
		}
		parts, err := origins[n].Open(ctx, division)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			for _, p := range parts {
				_ = p.Close()
			}
		})
		return parts, nil
	}
}

// Cancelled checks that loads that end in the middle of pages cost the others no session of their moment.
func Cancelled(t *testing.T, tables ...sqltable.Server) {
	t.Helper()
	origins, open := Joined(t, true, tables...)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		parts, err := open(0, ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Millisecond, cancel)
		for err == nil {
			_, err = parts[0].Next()
		}
		if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	for n := range tables {
		parts, err := open(n, t.Context())
		if err == nil {
			_, err = parts[0].Next()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if a, b := origins[0].Snapshots(), origins[1].Snapshots(); len(a) != 1 || len(b) != 1 || a[0].Name != b[0].Name || !a[0].Taken.Equal(b[0].Taken) {
		t.Errorf("%+v and %+v", a, b)
	}
}

// Alike checks that the rows of tables are the same, read in one moment or each by itself.
func Alike(t *testing.T, tables ...sqltable.Server) {
	t.Helper()
	_, open := Joined(t, true, tables...)
	var joined [][]source.Source
	for n := range tables {
		parts, err := open(n, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		joined = append(joined, parts)
	}
	for n, s := range tables {
		_, own := Open(t, s, nil)
		got, want := All(t, joined[n], nil), All(t, own, nil)
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", s.Name(), len(got), len(want))
		}
	}
}

// Says checks that an error says something; nothing is none.
func Says(t *testing.T, do func() error, text string) {
	t.Helper()
	if err := do(); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %q", err, text)
	}
}
