// Package readorder decides in which order the sections of an input are read. Sections are consecutive records, each
// with closed intervals of ordering keys that hold the keys of all its rows; Order returns an order in which a section
// comes after every earlier one with an overlapping interval, and that otherwise uses the keys evenly. Rows of one key
// keep their order, and a Builder stays within its bytes. The package reads nothing and does not know lanes.
package readorder
