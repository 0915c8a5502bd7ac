// Package profile is a name for where a Tablestore is and whose access keys are used. Find takes the endpoint and the instance from
// variables of the environment that end with the name, or from a file of this tool; Keys takes the keys from such variables, or from the profile of
// that name in the file of the vendor's own command line. It promises that no key is shown or written.
package profile
