// Package readorder orders the sections of an input: runs of records, each with intervals that hold its ordering keys.
// In reading order, a section follows every earlier one with an overlapping interval, so rows of one key keep their
// order; otherwise sections spread evenly over the keys. The package does not read inputs or deal with lanes.
package readorder
