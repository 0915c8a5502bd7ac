// Package restore loads exact archives into tables. It gives a new target the properties in the archive, and refuses an
// unsuitable target before the first row. Command and library use it to restore the same rows; fromtable shares checks.
package restore
