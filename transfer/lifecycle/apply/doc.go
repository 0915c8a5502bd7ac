// Package apply applies a policy to the tables of an instance. Look takes a policy, a template of names and a
// connection and returns a Plan; Plan.Run carries it out and reports the result for each table. Look changes nothing.
// Throughput is changed no more often than the service allows, without delaying other tables. A table is dropped only
// on request, right after its export was read back and found equal to it. The next run finishes an interrupted one. The
// package knows nothing of terminals and flags.
package apply
