// Package tablesync makes a table equal to its inputs by writing only the differences. Run compares the inputs with the
// table, stores the rows to put and the keys to delete in files in the run folder, and then loads those files: first
// the rows, then, if requested and safe, the deletes. Look only compares, and predicts Run's changes and costs.
//
// The files are complete before the first row is written. From then on, a killed run resumes with them, each load from
// its own checkpoint. A killed comparison is repeated.
package tablesync
