// Package address parses addresses of tables, ots://[PROFILE@]INSTANCE/TABLE, and names the environment variables of a
// profile. It reads no environment variables and sends no requests.
package address
