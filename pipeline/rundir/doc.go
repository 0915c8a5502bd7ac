// Package rundir keeps the folder of a run: summary, rejected rows and append-only journals. Create makes a Folder,
// Reopen continues one. Rejects are kept byte for byte under their header, so that the file can be corrected and
// loaded. An earlier run's files are kept; a journal continues at a given length.
package rundir
