// Package collection decides when the command's garbage collector first runs: at a heap of 16 MB instead of 4 MB; At
// sets the later ones. It imports only the standard library, and its path sorts first, so it is initialized before the
// dependencies: collecting their tables took a seventh of the startup time.
package collection
