// Package readorder decides in which order the sections of an input are read. Sections of consecutive records come in, each with
// closed intervals of ordering keys that hold the keys of all of its rows; Order returns an order in which a section comes after
// every earlier one whose intervals meet its own, and that uses the keys evenly otherwise. It promises that rows of one key keep
// their order, and that a Builder stays within its bytes. It reads nothing and knows no lanes.
package readorder
