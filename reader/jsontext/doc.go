// Package jsontext writes typed values as JSON text, for the nested values of all formats that have types. What comes in is a value as
// a file has it, what goes out is text with all of its digits.
package jsontext
