// Package rundir keeps the folder of a run, with its summary, rejected rows and append-only journals. Create creates a
// Folder, and Reopen continues one. Rejects are kept byte for byte under their header, so that a file of them can be
// corrected and loaded. The files of an earlier run are kept. Journals continue at a given length.
package rundir
