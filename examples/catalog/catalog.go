// Package catalog is the sample context: the brands, categories and products of a shop. It is all that an application
// writes: what a command may say, what it decides, and what its events do to the state. Nothing here knows of Kafka or
// Postgres, of retries or of transactions.
//
// Read it in the order of product.go (an aggregate that minds its own state), brand.go (one that also holds a unique
// key) and category.go (the same again, smaller).
//
// The types with JSON names are wire formats: commands are sent by others, events and states are read for as long as
// the journal lives. Fields are added to them, never renamed or given another meaning.
package catalog

import "github.com/seed54173720/writ/pkg/kernel"

// Context returns the catalogue with everything that it registers. Every call returns a new one.
func Context() *kernel.Context {
	c := kernel.New("catalog")
	registerBrand(c)
	registerCategory(c)
	registerProduct(c)
	return c
}

// The codes that the catalogue rejects commands with, beside those of the kernel (not-found, already-exists, …).
// Programs act on them: a code is never renamed.
const (
	CodeBlankName    = "blank-name"
	CodeNameTaken    = "name-taken"
	CodeBadPrice     = "bad-price"
	CodeOutOfStock   = "out-of-stock"
	CodeTooMuchStock = "too-much-stock"
)
