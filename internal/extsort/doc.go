// Package extsort sorts more items than fit in memory. A Sorter takes items, each a key and a value of bytes; Sorted
// returns them by key, then by value, all or a range. Each item comes out exactly once, in an order that does not
// depend on the memory, and memory and open readers stay within their limits.
package extsort
