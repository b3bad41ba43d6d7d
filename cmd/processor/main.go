// Command processor serves the sample context.
package main

import (
	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/processor"
)

func main() { processor.Main(catalog.Context(), processor.WithDemo(catalog.Demo)) }
