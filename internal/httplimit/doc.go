// Package httplimit bounds the answers of object stores and gateways. A transport goes in and a transport with bounded answers comes out;
// it promises that a server cannot fill the memory with a refusal or a listing.
package httplimit
