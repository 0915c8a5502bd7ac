// Package rundir is the folder that a run leaves behind: the summary, the rejected rows, and journals that only grow.
// Reports, rejects and lines come in, files go out. It promises that rejected records are kept byte for byte under their
// own header, so that the file can be corrected and loaded again, that files of an earlier run in the same folder are
// kept, and that a journal continues at the length it is told. It knows nothing of how rows are read or written.
package rundir
