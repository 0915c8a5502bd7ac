// Package job handles job files, which name many loads, and the record of running them. Read parses a YAML file by the
// keys of a Vocabulary (the flags of the commands). Expand makes one load per value of a placeholder such as {table}.
// Check finds conflicts. Run starts loads in order, several at a time, and records in the job's folder how each ended.
// The package does not know what a load is: the caller gets the arguments of a command.
//
// It promises that a key means the same as the flag of its name, that unknown settings are refused with file and line,
// that a killed job resumes with its original settings, and that no finished load runs again.
package job
