// Package extsort sorts more items than fit in memory. A Sorter takes items, pairs of a key and a value in bytes;
// Sorted returns all or a range of them, ordered by key, then by value. It returns each item exactly once, in an order
// that does not depend on the available memory, and keeps to the limits on memory and readers.
package extsort
