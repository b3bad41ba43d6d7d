package command_test

import (
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
)

func Example() {
	c, err := command.New("catalog.brand.create", "shop").
		ID("r-1").
		Subject("7").
		JSON(map[string]string{"name": "Acme"}).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	var record command.Record
	c.Record(&record) // what the producer sends
	fmt.Printf("%s %s\n", record.Key, record.Value)

	var read command.Command // what the processor reads
	if refusal := command.Read(&read, "catalog", &record); refusal != nil {
		fmt.Println(refusal)
		return
	}
	fmt.Println(read.Aggregate(), read.Name(), read.RequestID(), read.Caller())

	reply := command.Reply{
		RequestID: read.RequestID(), Type: read.Type(), Aggregate: read.Aggregate(),
		Outcome: command.Rejected,
		Error:   command.Errorf("name-taken", "another brand is named %q", "Acme"),
	}
	fmt.Printf("%s\n", reply.Append(nil))
	// Output:
	// brand/7 {"name":"Acme"}
	// brand/7 create r-1 shop
	// {"requestId":"r-1","type":"catalog.brand.create","tenant":"","aggregate":{"type":"brand","id":"7"},"outcome":"rejected","duplicate":false,"version":0,"error":{"code":"name-taken","message":"another brand is named \"Acme\""}}
}
