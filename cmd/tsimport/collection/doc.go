// Package collection decides when the garbage collector of the command first runs: at a heap of 16 MB instead of 4 MB,
// from before other packages are initialized; At sets the later ones. The package imports only the standard library,
// and its path sorts before the dependencies' paths, so it is initialized before them: their tables alone are 3 MB, and
// collecting them took a seventh of the startup time.
package collection
