// Package jsontext writes typed values as JSON text with all digits, for the nested values of all typed formats.
package jsontext
