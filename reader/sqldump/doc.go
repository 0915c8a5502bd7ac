// Package sqldump has what all dumps share: a Dump lists tables and where their rows are; Tokens reads statements.
package sqldump
