package options

import "time"

// Given is what a user has given, by the names of the flags of tsimport load. What was not given has its default, and IsSet says
// so. A *cli.Context of the command is all of it but Texts.
type Given interface {
	IsSet(name string) bool
	String(name string) string
	Bool(name string) bool
	Int(name string) int
	Int64(name string) int64
	Float64(name string) float64
	Duration(name string) time.Duration
	// Texts returns an option that may be repeated.
	Texts(name string) []string
}
