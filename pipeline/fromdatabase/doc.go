// Package fromdatabase is a load of a table or a query of a database. A request comes in; Begin gives columns the types that the database
// says, and a new table its primary key. It promises that the command and the library load the same rows of the same address.
package fromdatabase
