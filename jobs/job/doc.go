// Package job handles job files, which name many loads, and records of their runs. Read parses YAML by the keys of a
// Vocabulary (the commands' flags). Expand makes a load per value of a placeholder such as {table}. Check finds
// conflicts. Run runs the loads in order, several at the same time, and records how they end.
//
// A key means the same as the flag of its name. Unknown settings are refused with file and line. A killed job resumes
// with its original settings and skips finished loads.
package job
