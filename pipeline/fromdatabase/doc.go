// Package fromdatabase loads a table or a query of a database. A request comes in; Begin gives columns the types stated
// by the database, and a new table its primary key. It promises that the command and the library load the same rows
// from the same address.
package fromdatabase
