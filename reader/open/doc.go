// Package open finds the kind of a source by its address, and opens it. A scheme means the same in every address; an
// address that is not read is refused with the way to load its rows.
package open
