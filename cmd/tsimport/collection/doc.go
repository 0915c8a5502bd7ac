// Package collection delays the first garbage collection of a command from a heap of 4 MB to one of 16 MB. At sets when
// later ones begin. The package imports only the standard library, and its path sorts first, so that it is initialized
// before the dependencies: collecting their tables took a seventh of the startup time.
package collection
