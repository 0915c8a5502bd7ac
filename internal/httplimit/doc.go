// Package httplimit bounds what is read of the answers of stores of objects and of gateways. A transport goes in and one comes out whose
// answers are no longer than their kind may be; it promises that a server cannot fill the memory with a refusal or a listing.
package httplimit
