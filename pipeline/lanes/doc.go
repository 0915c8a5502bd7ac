// Package lanes sends the rows of a load: each partition of the table has a lane, with a queue of rows that were never sent, a pacer,
// and what is known of how the partition answers. The dispatcher puts rows in, says when checkpoints describe the load, and is given the
// landings of requests; which lane sends next, how much, and under which limits is decided here.
package lanes
