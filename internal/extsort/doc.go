// Package extsort sorts more items than fit in memory. An item is a key and a value of bytes. A Sorter takes items;
// Sorted returns all or a range of them, ordered by key, then by value. It returns each item exactly once, in an order
// that does not depend on the available memory, and keeps to the limits on memory and readers.
package extsort
