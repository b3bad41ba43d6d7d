package catalog_test

import (
	"fmt"
	"slices"

	"github.com/seed54173720/writ/examples/catalog"
)

func ExampleContext() {
	types := catalog.Context().CommandTypes()
	slices.Sort(types)
	for _, name := range types {
		fmt.Println(name)
	}
	// Output:
	// catalog.brand.create
	// catalog.brand.release-name
	// catalog.brand.rename
	// catalog.category.create
	// catalog.category.rename
	// catalog.product.add-stock
	// catalog.product.change-price
	// catalog.product.create
	// catalog.product.take-stock
}
