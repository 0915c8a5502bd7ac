// Package sqldump has the parts common to all dumps. A Dump lists tables and their rows; Tokens reads statements.
package sqldump
