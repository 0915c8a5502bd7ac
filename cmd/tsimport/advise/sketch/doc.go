// Package sketch summarizes millions of values in little memory: Distinct estimates the number of distinct values, and
// Top finds the most frequent ones. The error of each count is known. The same values in the same order give the same
// results in every run. The package knows nothing of rows, columns or files.
package sketch
