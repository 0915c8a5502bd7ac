package limiter

import "time"

// capacity is a rate over time. Times are Unix nanoseconds.
type capacity struct {
	rate  float64
	start int64
	steps []Step
}

// span is the rate at a time and until when it stays.
func (c *capacity) span(at int64) (rate float64, until int64) {
	rate, until = c.rate, 1<<63-1
	for _, s := range c.steps {
		if from := c.start + int64(s.After); from > at {
			return rate, from
		}
		rate = c.rate * s.Factor
	}
	return rate, until
}

func (c *capacity) at(at int64) float64 {
	rate, _ := c.span(at)
	return rate
}

// between is how many units the rate gives from a time to another.
func (c *capacity) between(from, to int64) (units float64) {
	for from < to {
		rate, until := c.span(from)
		until = min(until, to)
		units += rate * float64(until-from) / float64(time.Second)
		from = until
	}
	return units
}

// answer and possible are those of the kinds that answer at once and can take what the rate gives.
func (c *capacity) answer() time.Duration           { return 0 }
func (c *capacity) possible(from, to int64) float64 { return c.between(from, to) }

// served is when units are served that are begun at a time.
func (c *capacity) served(from int64, units float64) int64 {
	for {
		rate, until := c.span(from)
		if left := rate * float64(until-from) / float64(time.Second); left < units {
			units -= left
			from = until
			continue
		}
		return from + int64(units/rate*float64(time.Second))
	}
}
