// Package sketch summarizes millions of values in little memory: Distinct estimates the number of distinct values, and
// Top finds the most frequent ones. The same values in the same order give the same results.
package sketch
