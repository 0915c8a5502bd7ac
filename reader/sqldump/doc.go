// Package sqldump has what all dumps share. A Dump lists tables and where their rows are; Tokens reads statements.
package sqldump
