// Package fromdatabase loads a table or a query of a database, for the command and the library. Begin gives columns the
// types that the database states, and a new table the source's primary key.
package fromdatabase
