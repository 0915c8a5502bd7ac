// Package apply does to the tables of an instance what a policy says. A policy, a template of names and a connection come
// in; a plan goes out, and when it is carried out, what happened to each table. It promises that looking changes nothing,
// that a table's throughput is changed as seldom as the service allows while other tables are not held up, that a table
// is dropped only when that was asked for and its export was found to be whole and equal to it just before, and that a
// run which was cut short is finished by the next. It knows nothing of terminals and flags.
package apply
