// Package restore loads exact archives into tables. It derives the target's properties from an archive, or refuses a
// target before the first row. The command and the library restore the same rows of an archive, completely. Copies
// share the checks of keys and indexes.
package restore
