package scan

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// priced is a service whose pages cost so many units each, and take a while.
type priced struct {
	mu    sync.Mutex
	pages int
	units int
}

func (p *priced) GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	time.Sleep(20 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	cost := 100 + 900*(p.pages%2)
	p.pages++
	p.units += cost
	return &tablestore.GetRangeResponse{
		ConsumedCapacityUnit: &tablestore.ConsumedCapacityUnit{Read: int32(cost)},
		NextStartPrimaryKey:  integerKey(int64(p.pages)),
	}, nil
}

func integerKey(n int64) *tablestore.PrimaryKey {
	pk := new(tablestore.PrimaryKey)
	pk.AddPrimaryKeyColumn("id", n)
	return pk
}

func TestAGateBoundsTheUnitsOfAllScansTogether(t *testing.T) {
	for _, scans := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			const rate, seconds = 2000, 60
			s := new(priced)
			gate := NewGate(rate)
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for range scans {
				group.Go(func() {
					p := NewPager(s, "t", key, Options{Manner: Manner{Gate: gate}})
					for {
						if _, err := p.Next(ctx); err != nil {
							return
						}
					}
				})
			}
			time.Sleep(seconds * time.Second)
			stop()
			group.Wait()
			// What is in flight when it begins is not known yet: a page each.
			if most := rate*seconds + 1000*scans; s.units > most || s.units < rate*seconds*9/10 {
				t.Errorf("%d scans: %d units, want about %d", scans, s.units, rate*seconds)
			}
		})
	}
}

func TestAGateWithoutARateNeverWaits(t *testing.T) {
	if g := NewGate(0); g != nil {
		t.Error("a gate without a rate")
	}
	reserved, err := (*Gate)(nil).wait(context.Background())
	(*Gate)(nil).charge(nil, reserved)
	if reserved != 0 || err != nil {
		t.Errorf("%v, %v", reserved, err)
	}
}

func TestAWaitingScanStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(0.001)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, err := g.wait(ctx)
		must(t, err)
		go stop()
		if _, err := g.wait(ctx); err == nil {
			t.Error("it has waited for a quarter of an hour")
		}
	})
}
