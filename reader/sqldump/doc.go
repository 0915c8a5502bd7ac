// Package sqldump holds what the dumps of all databases have in common: a Dump is the tables of one, with where the rows of each are in its
// text, and Choose finds the table that is meant. Tokens and Items read statements. How a database writes its dumps the rooms of each know.
package sqldump
