// Package fromdatabase loads a table or a query of a database. Given a request, Begin gives columns the types stated by
// the database, and a new table its primary key. The command and the library load the same rows from an address.
package fromdatabase
