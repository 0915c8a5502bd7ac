// Package tablesync makes a table what its inputs say and writes only the differences. Run compares the inputs with the table, keeps
// the rows to put and the keys to delete in files of the run folder, and then loads those files: first the rows, then, if that was
// asked for and nothing speaks against it, the deletes. Look compares only and says what Run would do and cost.
//
// The files are complete before the first row is written. From then on a run that was killed resumes with them, each load at its own
// checkpoint. A comparison that was killed is repeated.
package tablesync
