// Package job is the file that names many loads, and what is kept of running them. Read takes a file of YAML apart, with the keys
// that a Vocabulary knows (they are the flags of the commands); Expand makes a load for each value of a name such as {table};
// Check finds what cannot be run; Run starts loads in their order, several at a time, and keeps in the job's folder how each has ended. What a
// load is, the caller knows: it gets the arguments of a command.
//
// It promises that a key means what the flag of its name means, that what is not understood is refused with file and line, that a
// job that was killed is resumed with what it began with, and that no load that has finished runs again.
package job
