// Package cost measures what a row costs the client. Run takes a shape of rows and returns what each way to load them used:
// CPU, allocations, memory and time of a process of its own against a null server, next to the floor, the least that any
// client needs. All ways get the same input and server, and every row must arrive. The package does not know how a load works
// inside.
package cost
