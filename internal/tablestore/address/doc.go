// Package address reads a table's name as an argument: ots://[PROFILE@]INSTANCE/TABLE. Parse reads it; Variable names a
// profile's environment variables. The package asks neither the environment nor a service.
package address
