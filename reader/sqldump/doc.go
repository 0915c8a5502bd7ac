// Package sqldump holds what all dumps share: a Dump is its tables with their rows' places; Tokens reads statements.
package sqldump
