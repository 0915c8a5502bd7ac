// Package collection decides when the garbage collector of the command begins: at a heap of 16 MB instead of 4 MB, from before other packages are
// initialized, and at At from then on. Nothing but the standard library is imported, and the path sorts before those of dependencies,
// so this package is initialized before them: their tables alone are 3 MB, and the collection of them took a seventh of the start.
package collection
