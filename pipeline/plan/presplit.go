package plan

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

// PreSplit is the number of ranges of a new table: PreSplitAuto, PreSplitOff, or 2 to client.MaxRanges.
type PreSplit int

const (
	PreSplitAuto PreSplit = 0  // as many as suit the size of the inputs
	PreSplitOff  PreSplit = -1 // the table begins with one partition
)

// PreSplitAuto makes a range per autoRangeRecords, a minute's rows of a partition, if that makes at least autoRanges.
const (
	autoRangeRecords = 250_000
	autoRanges       = 2
)

func (p *planner) settlePreSplit() error {
	want, target := p.request.Target.PreSplit, &p.request.Target
	if want == PreSplitOff || p.request.Written || want == PreSplitAuto && target.Absent {
		return nil
	}
	given := p.request.Read.Sources != nil && !p.plan.Live // rows that a program provides cannot be sampled in advance
	if !p.plan.Create || p.plan.Empty || p.plan.Tables != nil || given {
		return nil
	}
	ranges := int(want)
	if want == PreSplitAuto {
		// A store in this process has no partitions to fill.
		if ranges = p.autoRanges(); ranges < autoRanges || target.Client.Transport != nil {
			return nil
		}
		if slices.ContainsFunc(p.plan.Sources, func(s *Source) bool { return !s.Anywhere() }) {
			p.notef("the new table begins with one partition, because only the beginning of an input can be read in advance " +
				"(compressed, re-encoded or remote)")
			return nil
		}
	}
	places, err := p.plan.KeySample()
	if err != nil {
		return err
	}
	p.plan.Bounds = rangeBounds(slices.Concat(places...), ranges)
	if n := len(p.plan.Bounds) + 1; n > 1 {
		p.notef("the new table will begin with %d ranges of %s", n, p.plan.Schema.Key[0].Name)
	}
	return nil
}

// autoRanges returns the number of ranges that suits the size of the inputs, or 0 if that is unknown.
func (p *planner) autoRanges() int {
	if p.plan.Bytes < 0 || p.sampled.records == 0 {
		return 0
	}
	records := float64(p.plan.Bytes) * float64(p.sampled.records) / float64(max(1, p.sampled.bytes))
	if p.request.Records > 0 {
		records = min(records, float64(p.request.Records))
	}
	return int(min(records/autoRangeRecords, client.MaxRanges))
}

// keySampler collects values of the first key column of a source's rows.
type keySampler struct {
	plan      *Plan
	converter *convert.Converter
	evaluator *keyexpr.Evaluator // nil if the column is not computed
	field     int                // index of the field otherwise
	places    [][]table.Value    // values from each place
}

func (p *Plan) newKeySampler(s *Source) (*keySampler, error) {
	c, err := p.Converter(s)
	if err != nil {
		return nil, err
	}
	k := &keySampler{plan: p, converter: c}
	if p.Makers != nil {
		k.field = p.Makers[0].Field
		if program := p.Makers[0].Program; program != nil {
			k.evaluator = program.NewEvaluator()
		}
	}
	return k, nil
}

func (k *keySampler) begin() { k.places = append(k.places, nil) }

// take takes the value of a record, if it has one, and reports whether it did.
func (k *keySampler) take(rec *record.Record, _ bool) bool {
	v, ok := k.value(rec)
	if ok {
		last := len(k.places) - 1
		k.places[last] = append(k.places[last], v)
	}
	return ok
}

func (k *keySampler) value(rec *record.Record) (v table.Value, ok bool) {
	fields, why := k.converter.Convert(rec)
	if why != nil {
		return v, false
	}
	if k.evaluator != nil {
		v, why = k.plan.Makers[0].Program.KeyValue(k.evaluator, fields, true)
	} else {
		v = fields[k.field]
	}
	if why != nil || v.Type != k.plan.Schema.Key[0].Type || len(v.Bytes) > table.MaxKeyBytes {
		return v, false
	}
	v.Bytes = bytes.Clone(v.Bytes)
	return v, true
}

// rangeBounds divides values into ranges of about equal size, and returns the first value of every range but the first.
func rangeBounds(values []table.Value, ranges int) (bounds []table.Value) {
	slices.SortFunc(values, table.Compare)
	last := 0
	for i := 1; i < ranges && len(values) > 0; i++ {
		at := i * len(values) / ranges
		if at <= last || table.Compare(values[at], values[last]) <= 0 {
			continue
		}
		bound, ok := asBound(values[at])
		if n := len(bounds); ok && table.Compare(bound, values[0]) > 0 && (n == 0 || table.Compare(bound, bounds[n-1]) > 0) {
			bounds, last = append(bounds, bound), at
		}
	}
	return bounds
}

// maxBoundBytes is the service's limit for the length of a bound.
const maxBoundBytes = 64

// asBound returns a valid bound near a value, which is the beginning of a long value.
func asBound(v table.Value) (bound table.Value, ok bool) {
	switch {
	case v.Type == table.Integer:
		return v, v.Int != math.MinInt64 && v.Int != math.MaxInt64
	case len(v.Bytes) > maxBoundBytes:
		n := maxBoundBytes
		for v.Type == table.String && n > 0 && !utf8.RuneStart(v.Bytes[n]) {
			n--
		}
		v.Bytes = v.Bytes[:n]
	}
	return v, len(v.Bytes) > 0
}

// ShowKey formats a key value for users, with binary values in hexadecimal.
func ShowKey(v table.Value) string {
	switch v.Type {
	case table.Integer:
		return strconv.FormatInt(v.Int, 10)
	case table.Binary:
		return fmt.Sprintf("%.60x", v.Bytes)
	}
	return table.Show(v.Bytes)
}
