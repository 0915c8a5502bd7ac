// Package lanes sends the rows of a load. Each partition of the table has a lane with a queue of rows that were never
// sent, a pacer, and knowledge of its answers. The dispatcher puts rows in, tells when checkpoints describe the load,
// and receives landings. The package decides which lane sends next, how much, and under which limits.
package lanes
