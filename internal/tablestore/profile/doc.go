// Package profile names an endpoint, an instance and access keys. Find takes the endpoint and the instance from
// environment variables that end with the name, or from a file of this tool; Keys takes the keys from such variables,
// or from the profile of that name in the file of the vendor's own command line. No key is ever shown or written.
package profile
