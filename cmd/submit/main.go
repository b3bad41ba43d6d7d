// Command submit sends commands of the sample context.
package main

import (
	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/submit"
)

func main() { submit.Main(catalog.Context()) }
