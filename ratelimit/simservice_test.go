package ratelimit

import "time"

// request is one BatchWriteRow: half of the way there, the server's decision row by row, half of it back.
func (w *world) request(j job) {
	var way time.Duration
	w.locked(func() { way = time.Duration(float64(w.c.rtt) * (0.8 + 0.4*w.random.Float64())) })
	time.Sleep(way / 2)
	var accepted int
	var state served
	w.locked(func() { accepted, state = w.serve(j.lane.shard, j.rows) })
	time.Sleep(way - way/2)
	w.locked(func() { w.answer(j, accepted, state) })
	w.wake()
}

type served int

const (
	yes served = iota
	notNow
	moved
)

func (w *world) serve(s *shard, rows int) (int, served) {
	now := time.Now()
	if !s.out.IsZero() && !now.Before(s.out) {
		if now.Before(s.back) {
			return 0, notNow
		}
		return 0, moved
	}
	factor := 1.0
	if w.c.factor != nil {
		factor = w.c.factor(now.Sub(w.began))
	}
	n := rows
	if w.table != nil {
		n = w.table.room(now, n, 1, w.c.perRow)
	}
	if w.c.fixedWindow {
		if second := int64(now.Sub(w.began) / time.Second); second != s.window {
			s.window, s.used = second, 0
		}
		n = min(n, int((s.rate*factor-s.used)/w.c.perRow))
		s.used += float64(n) * w.c.perRow
	} else {
		n = s.room(now, n, factor, w.c.perRow)
		s.tokens -= float64(n) * w.c.perRow
	}
	if w.table != nil {
		w.table.tokens -= float64(n) * w.c.perRow
	}
	return n, yes
}

// room is how many of rows the bucket lets pass. A row larger than the bucket passes a full one, which then owes.
func (s *shard) room(now time.Time, rows int, factor, perRow float64) int {
	s.tokens = min(s.burst*factor, s.tokens+now.Sub(s.at).Seconds()*s.rate*factor)
	s.at = now
	if perRow > s.burst*factor {
		if s.tokens >= s.burst*factor*(1-1e-9) {
			return 1
		}
		return 0
	}
	return max(0, min(rows, int(s.tokens/perRow+1e-9)))
}

func (w *world) answer(j job, accepted int, state served) {
	now := time.Now()
	l := j.lane
	w.free++
	l.inFlight--
	if l.gone {
		l = w.lanes[w.random.IntN(len(w.lanes))]
	}
	l.queued += j.rows - accepted
	switch {
	case j.lane.gone:
	case state == notNow:
		l.controller.unavailable(now)
	case state == moved:
		w.split(l, now)
	default:
		w.sentRows += j.rows
		w.throttledRows += j.rows - accepted
		w.acceptedRows += accepted
		if accepted > 0 {
			s := l.shard
			s.lastAck, w.lastAck = now, now.Sub(w.began)
			s.accepted += float64(accepted) * w.c.perRow
			s.acks = append(s.acks, ack{now, float64(accepted) * w.c.perRow})
		}
		l.controller.answered(j.sent, now, float64(j.rows)*w.c.perRow, float64(accepted)*w.c.perRow)
	}
}

// split puts two lanes in the place of one whose partition has split.
func (w *world) split(l *lane, now time.Time) {
	parent := l.shard
	l.gone = true
	at := 0
	for w.lanes[at] != l {
		at++
	}
	var lanes []*lane
	for i := range 2 {
		s := &shard{rate: parent.rate, burst: parent.burst, at: parent.back, window: -1}
		if now.Sub(w.began) < time.Duration(w.c.splits)*10*time.Second {
			s.out = parent.out.Add(10 * time.Second)
			s.back = s.out.Add(time.Second)
		}
		parent.children = append(parent.children, s)
		w.shards = append(w.shards, s)
		lanes = append(lanes, &lane{shard: s, controller: l.controller.child(now), queued: (l.queued + i) / 2, unread: (l.unread + i) / 2})
	}
	w.lanes = append(w.lanes[:at:at], append(lanes, w.lanes[at+1:]...)...)
}
