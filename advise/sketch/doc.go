// Package sketch answers questions about millions of values in little memory: how many different ones there are, and
// which come most often. Hashes and values come in one by one, counts with known errors go out. It promises the same
// answers for the same values in the same order, on every run. It does not know rows, columns or files.
package sketch
