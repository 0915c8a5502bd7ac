// Package jsontext writes typed values as JSON text with all digits, for nested values of typed formats.
package jsontext
