// Package bench generates the datasets for demos and measurements of tsimport: student cards (StudentCards), rows of a
// given shape (Shape) and keys of a given distribution (Keys). The same size, order and seed give the same bytes on
// every machine, in constant memory.
package bench
