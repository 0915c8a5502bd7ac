package server

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

type millis float64

func (m millis) duration() time.Duration {
	ns := float64(m) * 1e6
	if math.Abs(ns) > 1e18 {
		ns = math.Copysign(1e18, ns) // avoids an overflow; checks refuse such times
	}
	return time.Duration(ns)
}

func millisOf(d time.Duration) millis { return millis(float64(d) / 1e6) }

// simulateJSON is a simulation as in the admin API, with times in milliseconds.
type simulateJSON struct {
	sim.Config
	sim.Answers
	Burst     millis             `json:"burst_ms"`
	Latency   millis             `json:"latency_ms"`
	Slow      map[string]float64 `json:"slow"`
	AutoSplit struct {
		sim.AutoSplit
		Sustain     millis `json:"sustain_ms"`
		Unavailable millis `json:"unavailable_ms"`
	} `json:"auto_split"`
	Splits struct {
		sim.Splits
		Start       millis `json:"start_ms"`
		Every       millis `json:"every_ms"`
		Stagger     millis `json:"stagger_ms"`
		Unavailable millis `json:"unavailable_ms"`
	} `json:"splits"`
	Moves struct {
		sim.Moves
		Unavailable millis `json:"unavailable_ms"`
	} `json:"moves"`
	NewTableMissing millis        `json:"new_table_missing_ms"`
	Choices         store.Choices `json:"choices"`
	IndexDelay      millis        `json:"index_delay_ms"`
}

func (j *simulateJSON) config() (sim.Config, error) {
	c := j.Config
	c.AutoSplit, c.Splits, c.Moves, c.Answers = j.AutoSplit.AutoSplit, j.Splits.Splits, j.Moves.Moves, j.Answers
	c.Burst, c.Latency = j.Burst.duration(), j.Latency.duration()
	c.AutoSplit.Sustain, c.AutoSplit.Unavailable = j.AutoSplit.Sustain.duration(), j.AutoSplit.Unavailable.duration()
	c.Splits.Start, c.Splits.Every = j.Splits.Start.duration(), j.Splits.Every.duration()
	c.Splits.Stagger, c.Splits.Unavailable = j.Splits.Stagger.duration(), j.Splits.Unavailable.duration()
	c.Moves.Unavailable, c.Answers.NewTableMissing = j.Moves.Unavailable.duration(), j.NewTableMissing.duration()
	for text, factor := range j.Slow {
		n, err := strconv.Atoi(text)
		if err != nil {
			return c, badRequest("slow: %q is not a partition number", text)
		}
		if c.Slow == nil {
			c.Slow = map[int]float64{}
		}
		c.Slow[n] = factor
	}
	return c, nil
}

func (s *Server) adminSimulate(_ context.Context, table string, j *simulateJSON) (any, error) {
	c, err := j.config()
	if err != nil {
		return nil, err
	}
	j.Choices.IndexDelay = j.IndexDelay.duration()
	if err := s.sim.Simulate(table, Simulation{Config: c, Choices: j.Choices}); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

type splitJSON struct {
	Keys        []json.RawMessage `json:"keys"`
	Even        int               `json:"even"`
	Sample      []json.RawMessage `json:"sample"`
	Partitions  int               `json:"partitions"`
	Unavailable millis            `json:"unavailable_ms"`
}

// check refuses a request unless it names exactly one way to cut.
func (j *splitJSON) check() error {
	ways := 0
	for _, given := range []bool{j.Keys != nil, j.Even != 0, j.Sample != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return badRequest(`give one of "keys", "even" and "sample"`)
	case j.Keys != nil && len(j.Keys) == 0, j.Sample != nil && len(j.Sample) == 0:
		return badRequest("the list of keys is empty")
	case j.Even < 0 || j.Partitions < 0 || j.Even > sim.MaxPartitions || j.Partitions > sim.MaxPartitions:
		return badRequest("a table has 1 to %d partitions", sim.MaxPartitions)
	case j.Partitions > 0 && j.Sample == nil:
		return badRequest(`"partitions" needs "sample"`)
	case !(j.Unavailable >= 0 && j.Unavailable <= 3_600_000):
		return badRequest(`"unavailable_ms" must be in 0…3600000`)
	}
	return nil
}

func (s *Server) adminSplit(ctx context.Context, table string, j *splitJSON) (any, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	_, st, err := s.sim.ensure(table)
	if err != nil {
		return nil, err
	}
	c := Cut{Even: j.Even, Partitions: j.Partitions, Unavailable: j.Unavailable.duration()}
	if c.Keys, err = readKeys(st.key, j.Keys); err != nil {
		return nil, err
	}
	if c.Sample, err = readKeys(st.key, j.Sample); err != nil {
		return nil, err
	}
	if err := s.sim.Split(ctx, table, c); err != nil {
		return nil, err
	}
	return s.partitionsJSON(st), nil
}

func readKeys(key wire.KeyColumn, list []json.RawMessage) ([]sim.Key, error) {
	keys := make([]sim.Key, 0, len(list))
	for i, raw := range list {
		k, err := readKey(key, raw)
		if err != nil {
			return nil, badRequest("key %d: %v", i, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// readKey decodes a value of the partition key: a string, an integer, or {"binary": base64}.
func readKey(key wire.KeyColumn, raw json.RawMessage) (sim.Key, error) {
	var k sim.Key
	switch key.Type {
	case wire.KeyInteger:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return "", badRequest("%.100s is not a value of the INTEGER partition key %s", raw, key.Name)
		}
		return sim.IntegerKey(n), nil
	case wire.KeyString:
		var text *string
		if err := json.Unmarshal(raw, &text); err != nil || text == nil || !utf8.Valid(raw) {
			return "", badRequest("%.100s is not a value of the STRING partition key %s", raw, key.Name)
		}
		k = sim.Key(*text)
	default:
		var b struct {
			Binary *[]byte `json:"binary"`
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&b); err != nil || b.Binary == nil {
			return "", badRequest(`%.100s is not a value of the BINARY partition key %s: write {"binary": "base64"}`,
				raw, key.Name)
		}
		k = sim.Key(*b.Binary)
	}
	if len(k) > wire.MaxKeyValueBytes {
		return "", badRequest("a partition-key value is at most %d bytes long, not %d", wire.MaxKeyValueBytes, len(k))
	}
	return k, nil
}

type moveJSON struct {
	Partition   *int   `json:"partition"`
	Unavailable millis `json:"unavailable_ms"`
}

func (s *Server) adminMove(_ context.Context, table string, j *moveJSON) (any, error) {
	if j.Partition == nil {
		return nil, badRequest(`"partition" is missing`)
	}
	if !(j.Unavailable >= 0 && j.Unavailable <= 3_600_000) {
		return nil, badRequest(`"unavailable_ms" must be in 0…3600000`)
	}
	_, st, err := s.sim.ensure(table)
	if err != nil {
		return nil, err
	}
	if err := s.sim.Move(table, *j.Partition, j.Unavailable.duration()); err != nil {
		return nil, err
	}
	return s.partitionsJSON(st), nil
}
