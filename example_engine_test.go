package tsimport_test

import (
	"log"

	"example.com/tsimport"
	"example.com/tsimport/engine/server"
)

// engine starts an in-memory engine; stop shuts it down.
func engine() (target tsimport.Target, stop func()) {
	s, err := server.Open("", server.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	return tsimport.Target{
			Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
			AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret,
		}, func() {
			if err := s.Close(); err != nil {
				log.Print(err)
			}
		}
}
