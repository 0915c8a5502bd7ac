// Package restore loads exact archives into tables. It gives a new target the properties in the archive, and refuses an
// unsuitable target before the first row. The command and the library use it. Package fromtable shares its checks.
package restore
