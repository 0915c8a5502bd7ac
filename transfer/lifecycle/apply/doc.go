// Package apply applies a policy to the tables of an instance. Look takes a policy, a template of names and a
// connection and returns a Plan, without changing anything; Plan.Run carries it out. Throughput is changed as often as
// the service allows, without delaying other tables. A table is dropped only on request, right after its export has
// been read back and compared. The next run finishes an interrupted run.
package apply
