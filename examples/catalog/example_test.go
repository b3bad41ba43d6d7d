package catalog_test

import (
	"fmt"
	"slices"

	"github.com/seed54173720/writ/examples/catalog"
)

func ExampleContext() {
	types := catalog.Context().CommandTypes() // the built-in ones among them
	slices.Sort(types)
	for _, name := range types {
		fmt.Println(name)
	}
	// Output:
	// catalog.brand.create
	// catalog.brand.delete
	// catalog.brand.recover
	// catalog.brand.release-name
	// catalog.brand.rename
	// catalog.brand.transfer-owner
	// catalog.brand.transfer-space
	// catalog.category.create
	// catalog.category.delete
	// catalog.category.recover
	// catalog.category.rename
	// catalog.category.transfer-owner
	// catalog.category.transfer-space
	// catalog.product.add-stock
	// catalog.product.change-price
	// catalog.product.create
	// catalog.product.delete
	// catalog.product.recover
	// catalog.product.take-stock
	// catalog.product.transfer-owner
	// catalog.product.transfer-space
}
