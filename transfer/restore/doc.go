// Package restore loads exact archives into tables. It derives the target's properties from an archive, or refuses a
// target before the first row. Command and library restore the same rows, completely. Copies share its checks.
package restore
