// Package runfolder is the folder that a run leaves behind: the summary, the rejected rows, and journals that only
// grow. Reports, rejects and bytes come in, files go out. It promises that rejected records are kept byte for byte under their own header, so that the
// file can be corrected and loaded again, and that files of an earlier run in the same folder are kept. It knows
// nothing of how rows are read or written.
package runfolder
