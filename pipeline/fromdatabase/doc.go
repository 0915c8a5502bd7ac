// Package fromdatabase loads a table or a query of a database. A request comes in; Begin gives columns the types stated
// by the database, and a new table its primary key. Command and library load the same rows from an address.
package fromdatabase
