package kerneltest_test

import (
	"fmt"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
)

// printer stands for the *testing.T of a test.
type printer struct{}

func (printer) Helper()                           {}
func (printer) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func Example() {
	var t printer
	kerneltest.For(t, catalog.Context()).
		Given("catalog.brand.create", "1", catalog.CreateBrand{Name: "Acme"}).
		Given("catalog.brand.create", "2", catalog.CreateBrand{Name: "Bolt"}).
		When("catalog.brand.rename", "2", catalog.RenameBrand{Name: "ACME"}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Apex"}).Then(catalog.BrandRenamed{Name: "Apex"}).
		When("catalog.brand.rename", "2", catalog.RenameBrand{Name: "ACME"}).Then(catalog.BrandRenamed{Name: "ACME"})
	fmt.Println("as told")
	// Output: as told
}
