// Package extsort sorts more items than memory holds. Items, each a key and a value of bytes, come in in any order; they
// go out by key and, where keys are equal, by value, all of them or those of a range of keys. It promises every item
// exactly once, the same order with any memory, and that memory and open readers stay within what they were
// given. It knows nothing of what keys and values mean.
package extsort
