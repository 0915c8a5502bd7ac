package sqltable

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPagesAreAskedForNoFasterThanTheirRowsMayBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{perSecond: 1000}
		begun := time.Now()
		for range 30 {
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.took(p.limit())
		}
		if d := time.Since(begun); d != 2900*time.Millisecond {
			t.Errorf("30 pages of %d rows in %v", p.limit(), d)
		}
		time.Sleep(time.Hour) // what was not read is not made up for
		for range 2 {
			begun = time.Now()
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.took(1000)
		}
		if d := time.Since(begun); d != time.Second {
			t.Errorf("the second page came after %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	if n := (&pace{perSecond: 0.5}).limit(); n != 1 {
		t.Error(n)
	}
}
