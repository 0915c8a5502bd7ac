// Package input finds what is to be read. Arguments as users type them come in (files, folders, globs with **, - for
// standard input, @list manifests, http and oss addresses); items go out in a fixed order, each of which can be read from
// its start or, where its source has ranges, at any offset by many at once. It promises that an item gives exactly the
// bytes it had when it was found or an error that names it, never a short or a mixed read, and that no secret of an
// address is shown. It knows nothing of formats, compression or tables.
package input
