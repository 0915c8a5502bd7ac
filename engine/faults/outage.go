package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/engine/wire"
)

// The kinds of outages.
const (
	Busy     = "busy"     // every request is refused with OTSServerBusy
	Throttle = "throttle" // every row is refused with OTSNotEnoughCapacityUnit
	Timeout  = "timeout"  // nothing is answered; every second request is applied
	Reset    = "reset"    // connections are cut; every second request is applied before
	Page503  = "page503"  // a gateway answers 503 with an HTML page
)

var Outages = []string{Busy, Throttle, Timeout, Reset, Page503}

// outageAfter is the default time from the first write request to an outage.
const outageAfter = 5 * time.Second

// Outage is a period without service.
type Outage struct {
	For   time.Duration
	Kind  string        // one of Outages
	After time.Duration // time from the first request that writes rows until it begins
}

// ParseOutage parses SECONDS:KIND[:AFTER], such as 5:busy or 15:reset:10. AFTER is in seconds, too.
func ParseOutage(text string) (*Outage, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return nil, fmt.Errorf("outage %q is not SECONDS:KIND or SECONDS:KIND:AFTER, such as 5:%s", text, Busy)
	}
	o := &Outage{Kind: parts[1], After: outageAfter}
	var err error
	if o.For, err = seconds(parts[0]); err != nil || o.For == 0 {
		return nil, fmt.Errorf("outage %q: want more than 0 and at most 86400 seconds, not %q", text, parts[0])
	}
	if !slices.Contains(Outages, o.Kind) {
		return nil, fmt.Errorf("outage %q: unknown kind %q; want one of %s", text, o.Kind, strings.Join(Outages, ", "))
	}
	if len(parts) == 3 {
		if o.After, err = seconds(parts[2]); err != nil {
			return nil, fmt.Errorf("outage %q: want it to begin after 0 to 86400 seconds, not %q", text, parts[2])
		}
	}
	return o, nil
}

func seconds(text string) (time.Duration, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && !(v >= 0 && v <= 86400) {
		err = strconv.ErrRange
	}
	return time.Duration(v * float64(time.Second)), err
}

// String returns the outage in the form that ParseOutage parses.
func (o *Outage) String() string {
	return fmt.Sprintf("%g:%s:%g", o.For.Seconds(), o.Kind, o.After.Seconds())
}

// fault returns the fault of the n-th request of an outage.
func (o *Outage) fault(n int) Fault {
	switch o.Kind {
	case Busy:
		return Fault{Action: Refuse, Code: wire.CodeServerBusy}
	case Throttle:
		return Fault{Action: RefuseRows, RowCode: func(int) string { return wire.CodeNotEnoughCapacityUnit }}
	case Timeout:
		return Fault{Action: Hang, Applied: n%2 == 1}
	case Reset:
		if n%2 == 1 {
			return Fault{Action: DropAfter}
		}
		return Fault{Action: DropBefore}
	}
	return Fault{Action: BadBody, Code: "503"}
}

// outage returns the fault of a request during the plan's outage, or false outside it.
func (p *Plan) outage(operation string, now time.Time) (Fault, bool) {
	if p.Outage == nil {
		return Fault{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.firstWrite.IsZero() {
		if !slices.Contains(rowWrites, operation) {
			return Fault{}, false
		}
		p.firstWrite = now
	}
	if d := now.Sub(p.firstWrite); d < p.Outage.After || d >= p.Outage.After+p.Outage.For {
		return Fault{}, false
	}
	n := p.refused
	p.refused++
	return p.Outage.fault(n), true
}
