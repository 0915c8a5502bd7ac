// Package cost measures what a row costs the client. A shape of rows comes in, and what each way to load them used goes
// out: CPU, allocations, memory and time of a process of its own against a null server, beside the floor of what no
// client can do without. It promises the same input, server and run for all of them, and that every row arrived. It does
// not know how a load works inside.
package cost
