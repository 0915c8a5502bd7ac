// Package bench makes the datasets that tsimport is tried out and measured with. A size, an order and a seed come in,
// CSV goes out. It promises the same bytes for the same parameters on every machine, in constant memory. It knows
// nothing of tables.
package bench
