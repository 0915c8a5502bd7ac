// Package sqldump holds what the dumps of all databases share: a Dump is its tables with the places of their rows, and
// Choose finds the selected table. Tokens and Items read statements. Each database's notation has its own room.
package sqldump
