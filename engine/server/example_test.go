package server_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
)

// A store in memory with three simulated partitions that loses the answers to a tenth of the writes.
func Example() {
	store, err := server.Open("", server.Options{InMemory: true, Simulation: &server.Simulation{
		Config: sim.Config{PartitionUnits: 1000, Latency: 5 * time.Millisecond},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	config := tablestore.NewDefaultTableStoreConfig()
	config.Transport = store.Transport()
	client := tablestore.NewClientWithConfig("http://localhost", server.DefaultInstance, server.DefaultAccessKeyID,
		server.DefaultAccessKeySecret, "", config)
	meta := &tablestore.TableMeta{TableName: "orders"}
	meta.AddPrimaryKeyColumn("customer", tablestore.PrimaryKeyType_STRING)
	if _, err := client.CreateTable(&tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{},
	}); err != nil {
		log.Fatal(err)
	}

	if err := store.Sim().Split(context.Background(), "orders", server.Cut{Keys: []sim.Key{"g", "p"}}); err != nil {
		log.Fatal(err)
	}
	plan, err := faults.Random{Rate: 0.1, Kinds: []string{"drop-after"}, Seed: 1}.Plan()
	if err != nil {
		log.Fatal(err)
	}
	store.SetFaults(plan)

	for _, p := range store.Sim().Stats()["orders"].Partitions {
		if p.Position >= 0 {
			fmt.Printf("partition %d from %q\n", p.Position, p.Start)
		}
	}
	// Output:
	// partition 0 from ""
	// partition 1 from "g"
	// partition 2 from "p"
}
