package status

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/lanes"
)

// metric is one number of a T, which is a state or a lane.
type metric[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*T) float64
}

func gauge[T any, N int | int64 | float64](name, help string, value func(*T) N, labels ...string) metric[T] {
	read := func(of *T) float64 { return float64(value(of)) }
	return metric[T]{prometheus.NewDesc("tsimport_"+name, help, labels, nil), prometheus.GaugeValue, read}
}

func counter[T any, N int | int64](name, help string, value func(*T) N, labels ...string) metric[T] {
	read := func(of *T) float64 { return float64(value(of)) }
	return metric[T]{prometheus.NewDesc("tsimport_"+name+"_total", help, labels, nil), prometheus.CounterValue, read}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

type (
	state = pipeline.State
	lane  = lanes.State
)

var (
	writing = prometheus.NewDesc("tsimport_writing", "1 while the load writes, 0 before and while it ends.", nil, nil)
	info    = prometheus.NewDesc("tsimport_load_info", "The load; the value is always 1.", []string{"table", "order"}, nil)
	pace    = prometheus.NewDesc("tsimport_lane_pace_info", "Pace of a lane (start, measure, cruise or known); always 1.",
		[]string{"partition", "from", "pace"}, nil)
	limited = prometheus.NewDesc("tsimport_limited_by",
		"What limits the load: 1 for the word that is true now, 0 for the others (docs/tuning.md).",
		[]string{"by"}, nil)
)

var stateMetrics = []metric[state]{
	counter("rows_read", "Rows read from the input.", func(s *state) int64 { return s.Read }),
	counter("rows_written", "Rows that the service has accepted.", func(s *state) int64 { return s.Written }),
	counter("rows_rejected", "Rows that will not be written.", func(s *state) int64 { return s.Rejected }),
	counter("rows_superseded", "Rows replaced by a later row of their key before they were sent.",
		func(s *state) int64 { return s.Superseded }),
	counter("rows_condition_failed", "Rows not written because the row in the table did not meet --when.",
		func(s *state) int64 { return s.ConditionFailed }),
	counter("rows_archived", "Rows written to files because their period is too old for a table.",
		func(s *state) int64 { return s.Archived }),
	counter("rows_retried", "Rows sent again.", func(s *state) int64 { return s.Retried }),
	counter("rows_throttled", "Rows refused for capacity, to be sent again.", func(s *state) int64 { return s.Throttled }),
	counter("requests", "BatchWriteRow requests answered.", func(s *state) int64 { return s.Requests }),
	counter("write_capacity_units", "Charged write capacity units.", func(s *state) int64 { return s.WriteCU }),
	counter("input_read_bytes", "Bytes of the input read.", func(s *state) int64 { return s.Marks.BytesRead }),
	gauge("elapsed_seconds", "Time since the load began.", func(s *state) float64 { return s.Seconds }),
	gauge("reading", "1 until the input has been read to its end.", func(s *state) int { return number(s.Reading) }),
	gauge("rows_queued", "Rows that wait in lanes, in memory and on disk.", func(s *state) int64 { return s.Queued }),
	gauge("rows_in_flight", "Rows in requests in flight.", func(s *state) int { return s.RowsOut }),
	gauge("rows_to_retry", "Rows that wait to be sent again.", func(s *state) int { return s.Retrying }),
	gauge("requests_in_flight", "Requests in flight.", func(s *state) int { return s.InFlight }),
	gauge("requests_in_flight_limit", "Maximum number of requests in flight.", func(s *state) int { return s.Workers }),
	gauge("memory_limit_bytes", "Memory that the load may use.", func(s *state) int64 { return s.Memory.Limit }),
	gauge("memory_lanes_bytes", "Memory of rows in lanes and in flight.", func(s *state) int64 { return s.Memory.Lanes }),
	gauge("memory_lanes_budget_bytes", "Memory that rows in lanes and in flight may take.",
		func(s *state) int64 { return s.Memory.Budget }),
	gauge("memory_full", "1 while reading waits for memory.", func(s *state) int { return number(s.Memory.Full) }),
	gauge("spill_frames", "Frames of spilled rows on disk.", func(s *state) int { return s.Spill.Frames }),
	gauge("spill_disk_bytes", "Disk space of spilled rows.", func(s *state) int64 { return s.Spill.DiskBytes }),
	gauge("spill_raw_bytes", "Spilled rows on disk before compression.", func(s *state) int64 { return s.Spill.RawBytes }),
	counter("rows_spilled", "Rows spilled so far.", func(s *state) int64 { return s.Spill.Rows }),
	gauge("partitions", "Known partitions of the table.", func(s *state) int { return s.Map.Partitions }),
	gauge("partition_map_exact", "1 if the service has named the partitions.",
		func(s *state) int { return number(s.Map.Exact) }),
	counter("partition_map_reads", "Readings of the partition map.", func(s *state) int64 { return s.Map.Reads }),
	counter("partition_map_recuts", "Changes of the partition map.", func(s *state) int64 { return s.Map.Recuts }),
	gauge("partition_map_failing", "1 if the last reading of the partition map failed.",
		func(s *state) int { return number(s.Map.Error != "") }),
}

// inputSize is left out while the size is unknown.
var inputSize = gauge("input_size_bytes", "Size of the input.", func(s *state) int64 { return s.Marks.BytesTotal })

var laneMetrics = []metric[lane]{
	laneGauge("rate_capacity_units_per_second", "Rate that the partition is assumed to accept; 0 if unknown.",
		func(l *lane) float64 { return l.Rate }),
	laneGauge("rows_queued", "Rows that wait in memory.", func(l *lane) int { return l.Queued }),
	laneGauge("spilled", "1 while rows of the lane are on disk.", func(l *lane) int { return number(l.Spilled) }),
	laneGauge("rows_to_retry", "Rows that wait to be sent again.", func(l *lane) int { return l.Retrying }),
	laneGauge("requests_in_flight", "Requests in flight.", func(l *lane) int { return l.InFlight }),
	laneGauge("down", "1 while the partition is unavailable.", func(l *lane) int { return number(l.Down) }),
	laneGauge("stuck", "1 while no rows of the lane are accepted.", func(l *lane) int { return number(l.Trouble != "") }),
	laneCounter("rows_final", "Rows written or rejected.", func(l *lane) int64 { return l.Final }),
	laneCounter("rows_throttled", "Rows refused for capacity.", func(l *lane) int64 { return l.Throttled }),
	laneCounter("rows_unavailable", "Rows refused as unavailable.", func(l *lane) int64 { return l.Unavailable }),
}

func laneGauge[N int | int64 | float64](name, help string, value func(*lane) N) metric[lane] {
	return gauge("lane_"+name, help, value, "partition", "from")
}

func laneCounter(name, help string, value func(*lane) int64) metric[lane] {
	return counter("lane_"+name, help, value, "partition", "from")
}

// collector delivers the metrics of a state or, without one, only that nothing is written. Each request has its own.
type collector struct{ state *pipeline.State }

func (c collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) {
	put := func(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "�") // shown keys may be cut inside a character
		}
		m, err := prometheus.NewConstMetric(desc, kind, v, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		out <- m
	}
	s := c.state
	put(writing, prometheus.GaugeValue, float64(number(s != nil)))
	if s == nil {
		return
	}
	put(info, prometheus.GaugeValue, 1, s.Table, s.Order)
	for _, w := range bottleneck.Words() {
		put(limited, prometheus.GaugeValue, float64(number(w.String() == s.LimitedBy)), w.String())
	}
	for _, m := range stateMetrics {
		put(m.desc, m.kind, m.value(s))
	}
	if s.Marks.BytesTotal >= 0 {
		put(inputSize.desc, inputSize.kind, inputSize.value(s))
	}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		partition := strconv.Itoa(l.Partition)
		for _, m := range laneMetrics {
			put(m.desc, m.kind, m.value(l), partition, l.From)
		}
		put(pace, prometheus.GaugeValue, 1, partition, l.From, l.Pace)
	}
}
