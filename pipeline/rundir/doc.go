// Package rundir keeps the folder of a run: the summary, the rejected rows, and append-only journals. Create makes a
// Folder, Reopen continues one. Rejected records are kept byte for byte under their own header, so that the file can be
// corrected and loaded again. Files of an earlier run in the same folder are kept, and a journal continues at the given
// length. The package does not know how rows are read or written.
package rundir
