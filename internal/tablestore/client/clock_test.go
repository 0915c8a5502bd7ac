package client

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"tsimport/engine/server"
)

// dated is an answer's header at a time of the service.
func dated(layout string, at time.Time) http.Header {
	h := http.Header{}
	if layout == http.TimeFormat {
		h.Set("Date", at.UTC().Format(layout))
	} else {
		h.Set("x-ots-date", at.UTC().Format(layout))
	}
	return h
}

func TestTheServicesTimeIsFoundByItsAnswers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Now()
	for name, tt := range map[string]struct {
		layout        string
		lies          int // of ten answers
		answers       int
		within, width time.Duration
	}{
		"milliseconds":          {layout: "2006-01-02T15:04:05.000Z", answers: 30, width: 60 * time.Millisecond},
		"seconds":               {layout: "2006-01-02T15:04:05Z", answers: 60, width: 400 * time.Millisecond},
		"HTTP dates":            {layout: http.TimeFormat, answers: 60, width: 400 * time.Millisecond},
		"some answers lie":      {layout: "2006-01-02T15:04:05.000Z", lies: 4, answers: 64, width: 60 * time.Millisecond},
		"the first answer lies": {layout: "2006-01-02T15:04:05.000Z", lies: -1, answers: 3, width: 200 * time.Millisecond},
	} {
		for _, ahead := range []time.Duration{0, 10 * time.Second, -14 * time.Minute, 17 * time.Millisecond} {
			c, now := new(Clock), start
			for i := range tt.answers {
				now = now.Add(time.Duration(random.IntN(700)) * time.Millisecond)
				sent, there := now, now.Add(time.Duration(random.IntN(100))*time.Millisecond)
				now = there.Add(time.Duration(random.IntN(100)) * time.Millisecond)
				at := there.Add(ahead)
				if i%10 < tt.lies || tt.lies < 0 && i == 0 {
					at = at.Add(time.Hour + time.Duration(i)*time.Minute)
				}
				c.Answered(dated(tt.layout, at), sent, now)
			}
			earliest, latest, known := c.Range(now)
			if want := now.Add(ahead); !known || want.Before(earliest) || want.After(latest) || latest.Sub(earliest) > tt.width {
				t.Errorf("%s, %v ahead: known %v, between %v and %v of the right time", name, ahead, known, earliest.Sub(want), latest.Sub(want))
			}
		}
	}
}

// The monotonic clock of a machine stands still while it sleeps: the service is far ahead then.
func TestTheServicesTimeIsFoundAgainAfterAPause(t *testing.T) {
	c, now := new(Clock), time.Now()
	answer := func(ahead time.Duration) {
		now = now.Add(time.Second)
		c.Answered(dated("2006-01-02T15:04:05.000Z", now.Add(ahead)), now.Add(-time.Millisecond), now)
	}
	for range 50 {
		answer(0)
	}
	answer(time.Hour)
	answer(time.Hour)
	if _, latest, _ := c.Range(now); latest.Sub(now) > time.Second {
		t.Error("two answers are believed")
	}
	answer(time.Hour)
	if earliest, _, _ := c.Range(now); now.Add(59 * time.Minute).After(earliest) {
		t.Error("three answers in a row are not believed")
	}
}

func TestWithoutDatesThisMachinesTimeIsUsed(t *testing.T) {
	c, now := new(Clock), time.Now()
	for _, h := range []http.Header{{}, {"X-Ots-Date": {"yesterday"}}, dated(time.RFC3339, now.Add(time.Hour)), dated(time.RFC3339, now.Add(time.Hour))} {
		c.Answered(h, now, now)
	}
	if from, to, known := c.Range(now); known || !from.Equal(now) || !to.Equal(now) || c.Measured() || c.SkewWarning() != "" {
		t.Errorf("%v to %v, %v", from, to, known)
	}
	var none *Clock
	if _, _, known := none.Range(now); known || none.Measured() {
		t.Error("no clock knows the time")
	}
}

func TestBothTransportsReadTheDate(t *testing.T) {
	for way := range 2 {
		traffic := new(Traffic)
		send := bothWays(t, t.Context(), embedded(t, nil), traffic)[way]
		for range leastSamples {
			must(t, send("ListTable"))
		}
		if by, known := traffic.Clock.Lag(); !known || by.Abs() > time.Second {
			t.Errorf("way %d: %v, %v", way, by, known)
		}
	}
}

func TestAClockThatTheServiceRefusesIsNamed(t *testing.T) {
	s := engine(t, server.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
	target := of(s)
	_, err := admin(t, target).List()
	if err == nil || !strings.Contains(err.Error(), "this machine's clock is too far from the service's: set it") {
		t.Error(err)
	}
}
