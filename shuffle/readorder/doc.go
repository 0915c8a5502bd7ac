// Package readorder orders the sections of an input: consecutive records with intervals that hold their ordering keys.
// In reading order, a section follows every earlier one with an overlapping interval, and keys are used evenly. Rows of
// one key keep their order. The package reads nothing and knows no lanes.
package readorder
