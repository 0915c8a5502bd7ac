// Package httplimit limits the answers of object stores and gateways: a server cannot fill the memory with a refusal or
// a listing. Transport wraps a transport.
package httplimit
