// Package tablesync makes a table equal to its inputs and writes only the differences. Run compares the inputs with the
// table, stores the rows to put and the keys to delete in files of the run folder, and then loads those files: first
// the rows, then, if requested and safe, the deletes. Look only compares and predicts what Run would do and cost.
//
// The files are complete before the first row is written. From then on a killed run resumes with them, each load at its
// own checkpoint. A killed comparison is repeated.
package tablesync
