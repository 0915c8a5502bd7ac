// Package extsort sorts more items than fit in memory. A Sorter takes items, each a key and a value of bytes, in any
// order. Sorted returns them by key, then by value, all of them or a range of keys. Each item comes out exactly once,
// the order does not depend on the memory, and memory and open readers stay within their limits. The package does not
// interpret keys and values.
package extsort
