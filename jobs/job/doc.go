// Package job handles job files, which name many loads, and records of running them. Read parses YAML by the keys of a
// Vocabulary (the commands' flags). Expand makes a load per value of a placeholder such as {table}. Check finds
// conflicts. Run runs the loads in order, several at the same time, and records how they end.
//
// It promises that a key means the same as the flag of its name, that unknown settings are refused with file and line,
// that a killed job resumes with its original settings, and that no finished load runs again.
package job
