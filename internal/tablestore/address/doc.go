// Package address reads the name of a table as an argument: ots://[PROFILE@]INSTANCE/TABLE. Parse reads it; Variable says which variables of
// the environment hold what a profile stands for. The package asks neither the environment nor a service.
package address
